/**
 * Agents as definitions say they should be: all of them or none, by name, without doing anything twice.
 */
import { describe, expect, layer } from "@effect/vitest"
import { Effect, Fiber } from "effect"
import { newInterposedStory } from "../testing/interposed.ts"
import { holding } from "../testing/owner-rows.ts"
import type { Json, Story } from "../testing/platform.ts"
import { countRows, expectProblem } from "../testing/problem-words.ts"
import { whenWaiting } from "../testing/server-connections.ts"
import { newStoryHere, SharedServer } from "../testing/shared-server.ts"
import { agentsOf, watcher } from "../testing/story-words.ts"
import { interposedInLine } from "../testing/waiting-in-line.ts"

const apply = (story: Story, agents: ReadonlyArray<unknown>, options: Record<string, unknown> = {}) =>
  Effect.map(story.post("/agents/apply", { agents, ...options }), (body) => body.agents)

const outcomes = (applied: ReadonlyArray<Json>) => applied.map(({ name, outcome }) => [name, outcome])

const [a, b, c] = ["a", "b", "c"].map((name) => watcher({ name })) as [Json, Json, Json]

const namesIn = (story: Story) =>
  Effect.map(agentsOf(story), (agents) => agents.map(({ name }) => name).toSorted())

layer(SharedServer.layer, { excludeTestServices: true })((it) => {
  describe("Requirement: Agents are applied from definitions", () => {
    it.effect("what is missing is created, what differs is updated, what is so already is left alone", () =>
      Effect.gen(function* () {
        const story = yield* newStoryHere
        expect(outcomes(yield* apply(story, [a, b]))).toEqual([
          ["a", "created"],
          ["b", "created"]
        ])
        const again = yield* apply(story, [a, b])
        expect(again).toMatchObject([
          { outcome: "unchanged", version: 1, changes: [] },
          { outcome: "unchanged", version: 1, changes: [] }
        ])
        const changed = yield* apply(story, [{ ...a, prompt: "Another." }, b, c])
        expect(outcomes(changed)).toEqual([
          ["a", "updated"],
          ["b", "unchanged"],
          ["c", "created"]
        ])
        expect(changed[0]).toMatchObject({
          version: 2,
          id: again[0].id,
          changes: [{ pointer: "/prompt", before: a.prompt, after: "Another." }]
        })
        expect(yield* story.get(`/agents/${again[0].id}`)).toMatchObject({ prompt: "Another.", version: 2 })
      })
    )

    it.effect("a dry run says the same, field by field, and does nothing", () =>
      Effect.gen(function* () {
        const story = yield* newStoryHere
        yield* apply(story, [a, b])
        const before = yield* countRows(story)
        const wanted = [{ ...a, maxSteps: 5, tools: [] }, c]
        const told = yield* apply(story, wanted, { dryRun: true, prune: true })
        expect(told).toMatchObject([
          {
            name: "a",
            outcome: "updated",
            version: 2,
            changes: [
              { pointer: "/tools", before: ["graph.*"], after: [] },
              { pointer: "/maxSteps", before: null, after: 5 }
            ]
          },
          { name: "c", outcome: "created", id: null, version: 1 },
          { name: "b", outcome: "deleted", version: 1 }
        ])
        expect(yield* countRows(story)).toEqual(before)
        expect(outcomes(yield* apply(story, wanted, { prune: true }))).toEqual(outcomes(told))
      })
    )

    it.effect("one wrong definition, and none is applied; each fault is told with its place", () =>
      Effect.gen(function* () {
        const story = yield* newStoryHere
        yield* apply(story, [a])
        const before = yield* countRows(story)
        const answer = yield* story.ask("POST", "/agents/apply", {
          agents: [
            { ...a, prompt: "Another." },
            { ...b, prompt: "{{ nobody }}" },
            { ...c, triggerType: "schedule", cronSchedule: "0 0 30 2 *" },
            b
          ]
        })
        expectProblem(answer, 422, "/agents/3/name")
        expect(answer.body.errors.map((fault: Json) => fault.pointer)).toEqual([
          "/agents/3/name",
          "/agents/1/prompt",
          "/agents/2/cronSchedule"
        ])
        expect(yield* countRows(story)).toEqual(before)
        expect(yield* agentsOf(story)).toMatchObject([{ prompt: a.prompt, version: 1 }])
        expectProblem(yield* story.ask("POST", "/agents/apply", { agents: [] }), 422, "/agents")
        expectProblem(
          yield* story.ask("POST", "/agents/apply", { agents: [{ ...a, capabilites: {} }] }),
          422,
          "/agents/0/capabilites"
        )
      })
    )

    it.effect("pruning deletes only what was applied once and is left out now", () =>
      Effect.gen(function* () {
        const story = yield* newStoryHere
        yield* story.post("/agents", watcher({ name: "by-hand" }))
        yield* apply(story, [a, b, c])
        expect(outcomes(yield* apply(story, [a]))).toEqual([["a", "unchanged"]])
        expect(outcomes(yield* apply(story, [a], { prune: true }))).toEqual([
          ["a", "unchanged"],
          ["b", "deleted"],
          ["c", "deleted"]
        ])
        expect(yield* namesIn(story)).toEqual(["a", "by-hand"])
        // An agent that a file names belongs to the files from then on.
        yield* apply(story, [a, watcher({ name: "by-hand" })])
        expect(outcomes(yield* apply(story, [a], { prune: true }))).toContainEqual(["by-hand", "deleted"])
      })
    )

    it.effect("a switch that somebody threw is not thrown back by a file that says nothing of it", () =>
      Effect.gen(function* () {
        const story = yield* newStoryHere
        const [{ id }] = yield* apply(story, [a])
        yield* story.patch(`/agents/${id}`, { enabled: false })
        expect(outcomes(yield* apply(story, [a]))).toEqual([["a", "unchanged"]])
        expect((yield* apply(story, [{ ...a, enabled: true }]))[0]).toMatchObject({
          outcome: "updated",
          changes: [{ pointer: "/enabled", before: false, after: true }]
        })
      })
    )

    it.effect("two who apply at once: no agent twice, and the last word is one of theirs, whole", () =>
      Effect.gen(function* () {
        const story = yield* newStoryHere
        const said = (text: string) => [a, b, c].map((agent: Json) => ({ ...agent, prompt: text }))
        yield* Effect.all(
          Array.from({ length: 6 }, (_, index) =>
            apply(story, index % 2 === 0 ? said("Even.") : said("Odd.").toReversed())
          ),
          { concurrency: "unbounded" }
        )
        const items = yield* agentsOf(story)
        expect(items.map(({ name }: Json) => name).toSorted()).toEqual(["a", "b", "c"])
        expect(new Set(items.map(({ prompt }: Json) => prompt)).size).toBe(1)
      })
    )

    it.effect("nobody applies without a token", () =>
      Effect.gen(function* () {
        const story = yield* newStoryHere
        const answer = yield* story.send(
          "POST",
          `/api/projects/${story.projectId}/agents/apply`,
          { agents: [a] },
          {
            authorization: "Bearer nobody"
          }
        )
        expectProblem(answer, 401)
        expect(yield* namesIn(story)).toEqual([])
      })
    )
  })
})

layer(interposedInLine, { excludeTestServices: true })((it) => {
  describe("An agent that somebody changes while others are at work on it", () => {
    const held = Effect.fnUntraced(function* ({ access }: Story, agent: Json) {
      const holder = yield* holding(access, `select from kb.agents where id = '${agent.id}' for update`)
      return Effect.orDie(holder.query("commit"))
    })

    it.effect("stays disabled under definitions that say nothing of that", () =>
      Effect.gen(function* () {
        const story = yield* newInterposedStory
        yield* apply(story, [a])
        const [agent] = yield* agentsOf(story)
        const letGo = yield* held(story, agent)
        const disabling = yield* Effect.forkChild(story.patch(`/agents/${agent.id}`, { enabled: false }))
        yield* whenWaiting(story.access, 1)
        const applying = yield* Effect.forkChild(apply(story, [{ ...a, prompt: "Another." }]))
        yield* whenWaiting(story.access, 2)
        yield* letGo
        expect(yield* Fiber.join(disabling)).toMatchObject({ enabled: false, version: 2 })
        expect(outcomes(yield* Fiber.join(applying))).toEqual([["a", "updated"]])
        expect(yield* story.get(`/agents/${agent.id}`)).toMatchObject({ enabled: false, prompt: "Another." })
      })
    )

    it.effect("has its name alone, also where several take it at once", () =>
      Effect.gen(function* () {
        const story = yield* newInterposedStory
        yield* apply(story, [a, b])
        const [first, second] = yield* agentsOf(story)
        const letGo = yield* held(story, first)
        const taking = yield* Effect.forkChild(story.ask("PATCH", `/agents/${first.id}`, { name: "taken" }))
        yield* whenWaiting(story.access, 1)
        const naming = `update kb.agents set name = 'taken' where id = '${second.id}'`
        const holder = yield* holding(story.access, naming)
        yield* letGo
        // Behind its own row it waits for the name.
        yield* whenWaiting(story.access, 1)
        yield* holder.query("commit")
        const refused = yield* Fiber.join(taking)
        expectProblem(refused, 409)
        expect(refused.body).toMatchObject({ reason: "nameTaken", detail: expect.stringContaining("taken") })
      })
    )
  })
})
