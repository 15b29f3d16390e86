/**
 * Many people decide at once on two servers: one decision is taken, and the graph agrees with it.
 */
import { describe, expect, layer } from "@effect/vitest"
import { Context, Effect, Layer } from "effect"
import { freshDatabase } from "../testing/fresh-database.ts"
import {
  type Doors,
  eventually,
  type Json,
  newProject,
  scripted,
  startServer,
  type Story,
  storyIn
} from "../testing/platform.ts"
import { inTier } from "../testing/tier.ts"
import { endedRuns, make, suggestionsOf, watcher } from "../testing/story-words.ts"
import { approve, reject, suggested, suggestedBy, updating } from "../testing/suggestion-words.ts"

class TwoServers extends Context.Service<
  TwoServers,
  { readonly newStories: Effect.Effect<readonly [Story, Story]> }
>()("@tropism/server/stories/ApprovalServers") {
  static readonly layer = Layer.effect(
    TwoServers,
    Effect.gen(function* () {
      const access = { ...(yield* freshDatabase), embedded: false }
      const [here, there]: readonly [Doors, Doors] = [yield* startServer(access), yield* startServer(access)]
      const newStories = Effect.map(
        newProject(here, access),
        (story) => [story, storyIn(there, access, story.projectId)] as const
      )
      return TwoServers.of({ newStories })
    })
  )
}

/** A project, through the doors of both servers. */
const newStories = Effect.flatMap(TwoServers, (servers) => servers.newStories)

/** A multiple of the twenty that the agent suggests in one step. */
const races = inTier(40, 40, 200)

const statusesOf = (answers: ReadonlyArray<{ readonly status: number }>) =>
  answers.map(({ status }) => status).toSorted()

/** Everything committed about an entity, once there is so much; it has its place in the feed a moment later. */
const eventsOf = (story: Story, entity: Json, count: number) =>
  eventually(
    Effect.map(story.get("/events?limit=200"), ({ items }): ReadonlyArray<string> =>
      items.filter(({ entityId }: Json) => entityId === entity.id).map(({ type }: Json) => type)
    ),
    ({ length }) => length >= count
  )

layer(TwoServers.layer, { excludeTestServices: true, timeout: 120_000 })((it) => {
  describe("Requirement: Suggestion Task Resolution, many at once", () => {
    it.effect("S000-R29 50 approvals on two servers make one change, one event and 49 conflicts", () =>
      Effect.gen(function* () {
        const [here, there] = yield* newStories
        const person = yield* make(here, "Person", { age: 1 })
        const { task } = yield* suggested(here, updating(person, { age: 2 }))
        const answers = yield* Effect.all(
          Array.from({ length: 50 }, (_, n) =>
            approve(n % 2 === 0 ? here : there, task, { digest: task.digest })
          ),
          { concurrency: 50 }
        )
        expect(statusesOf(answers)).toEqual([200, ...Array.from({ length: 49 }, () => 409)])
        expect(new Set(answers.map(({ body }) => body.reason))).toEqual(
          new Set([undefined, "alreadyDecided"])
        )
        expect((yield* there.get(`/objects/${person.id}`)).version).toBe(2)
        expect((yield* here.get(`/objects/${person.id}/history`)).items).toHaveLength(2)
        expect((yield* eventsOf(here, person, 2)).toSorted()).toEqual(["created", "updated"])
      })
    )

    it.effect(
      `S000-R29, R32 of an approval and a rejection at once, ${races} times on two servers, one is taken and the graph agrees`,
      () =>
        Effect.gen(function* () {
          const [here, there] = yield* newStories
          const people = yield* Effect.forEach(
            Array.from({ length: races }, (_, n) => n),
            (n) => make(here, "Person", { n, age: 1 }),
            { concurrency: 8 }
          )
          const steps = Array.from({ length: races / 20 }, (_, step) => ({
            when: `step == ${step}`,
            calls: people.slice(step * 20, step * 20 + 20).map((person) => updating(person, { age: 2 }))
          }))
          const agent = yield* here.post(
            "/agents",
            watcher({
              executionMode: "suggest",
              reactionConfig: { objectTypes: ["Start"], events: ["created"] },
              model: scripted([...steps, { say: "Done." }])
            })
          )
          yield* make(here, "Start")
          yield* endedRuns(here, agent, 1)
          const tasks = yield* suggestionsOf(here, races)
          const taken = { completed: 0, rejected: 0 }
          yield* Effect.forEach(
            tasks,
            (task, n) =>
              Effect.gen(function* () {
                const [one, other] = n % 2 === 0 ? [here, there] : [there, here]
                const decisions = [approve(one, task), reject(other, task)]
                const answers = yield* Effect.all(n % 4 < 2 ? decisions : decisions.toReversed(), {
                  concurrency: 2
                })
                expect(statusesOf(answers)).toEqual([200, 409])
                const { outcome, status, target } = yield* other.get(`/tasks/${task.id}`)
                expect([status, target.version, target.properties.age, outcome === null]).toEqual(
                  status === "completed" ? ["completed", 2, 2, false] : ["rejected", 1, 1, true]
                )
                taken[status as "completed" | "rejected"] += 1
              }),
            { concurrency: 4 }
          )
          expect(taken.completed + taken.rejected).toBe(races)
        }),
      120_000
    )

    it.effect(
      "S000-R29 approvals of suggestions that clash, on two servers at once: one goes on top of none",
      () =>
        Effect.gen(function* () {
          const [here, there] = yield* newStories
          const person = yield* make(here, "Person", { age: 1 })
          // Two agents, so that neither refines the other's suggestion.
          const one = yield* suggestedBy(here, "one", updating(person, { age: 2 }))
          const two = yield* suggestedBy(here, "two", updating(person, { age: 3 }))
          const answers = yield* Effect.all([approve(here, one.task), approve(there, two.task)], {
            concurrency: 2
          })
          expect(statusesOf(answers)).toEqual([200, 409])
          const refused = answers.find(({ status }) => status === 409)
          expect(refused?.body).toMatchObject({ reason: "outdated", current: 2 })
          expect(refused?.body.conflicts).toMatchObject([{ pointer: "/age", base: 1 }])
          expect((yield* here.get(`/objects/${person.id}/history`)).items).toHaveLength(2)
        })
    )

    it.effect(
      "S000-R29 an approval against what takes the agent's right to it, or its object: both or neither",
      () =>
        Effect.gen(function* () {
          const [here, there] = yield* newStories
          const against = [
            (agent: Json) => there.ask("PATCH", `/agents/${agent.id}`, { enabled: false }),
            (agent: Json) =>
              there.ask("PATCH", `/agents/${agent.id}`, { capabilities: { canUpdateObjects: false } }),
            (_: Json, person: Json) => there.ask("DELETE", `/objects/${person.id}`)
          ]
          for (const [round, act] of [...against, ...against].entries()) {
            const person = yield* make(here, "Person", { age: 1 })
            const { agent, task } = yield* suggestedBy(here, `agent-${round}`, updating(person, { age: 2 }))
            const [decided] = yield* Effect.all([approve(here, task), act(agent, person)], {
              concurrency: 2
            })
            const { status } = yield* there.get(`/tasks/${task.id}`)
            const history = yield* there.get(`/objects/${person.id}/history`)
            const isMade = history.items.some(({ taskId }: Json) => taskId === task.id)
            expect([decided.status, status, isMade]).toEqual(
              decided.status === 200 ? [200, "completed", true] : [409, "pending", false]
            )
            if (status === "pending") yield* reject(here, task)
          }
        })
    )
  })
})
