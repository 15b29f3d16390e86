/**
 * An agent's last place below maxPendingRuns, for which an event and a door come at once.
 */
import { describe, expect, layer } from "@effect/vitest"
import { Effect, Fiber } from "effect"
import { Interposed, newInterposedStory } from "../testing/interposed.ts"
import { holding } from "../testing/owner-rows.ts"
import { eventually, type Json, type Story } from "../testing/platform.ts"
import { whenWaiting } from "../testing/server-connections.ts"
import { entriesWhen, make, runsOf, silentFor, watcher } from "../testing/story-words.ts"

const newAgent = (story: Story) =>
  story.post("/agents", watcher({ model: silentFor(600_000), maxPendingRuns: 1 }))

const trigger = (story: Story, agent: Json) => story.ask("POST", `/agents/${agent.id}/trigger?wait=false`, {})

/** What woke the runs of an agent, once all are at work. */
const atWork = (story: Story, agent: Json) =>
  Effect.map(
    eventually(
      runsOf(story, agent),
      (runs) => runs.length > 0 && runs.every(({ status }) => status === "running")
    ),
    (runs) => runs.map((run): string => run.trigger.type)
  )

layer(Interposed.layer, { excludeTestServices: true })((it) => {
  describe("S001-K03 The last place of an agent", () => {
    it.effect(
      "is the event's that is being dispatched: a door waits until it is counted, and is refused",
      () =>
        Effect.gen(function* () {
          const { access, server } = yield* Interposed
          const story = yield* newInterposedStory
          const agent = yield* newAgent(story)
          let asking: Fiber.Fiber<Json> | undefined
          yield* server.interpose(
            "dispatch.beforeCommit",
            Effect.gen(function* () {
              asking = yield* Effect.forkDetach(trigger(story, agent))
              yield* Effect.raceFirst(Fiber.await(asking), whenWaiting(access, 1))
            })
          )
          yield* make(story, "Person")
          expect(yield* atWork(story, agent)).toEqual(["reaction"])
          expect(asking && (yield* Fiber.join(asking))).toMatchObject({
            status: 429,
            body: { reason: "pendingRuns" }
          })
          expect(yield* atWork(story, agent)).toEqual(["reaction"])
        })
    )

    it.effect("is counted again when nobody else can take it any more", () =>
      Effect.gen(function* () {
        const { access } = yield* Interposed
        const story = yield* newInterposedStory
        const agent = yield* newAgent(story)
        yield* story.post(`/runs/${(yield* trigger(story, agent)).body.id}/cancel`)
        // Agents can be read, and not be held.
        const other = yield* holding(access, "lock table kb.agents in exclusive mode")
        yield* make(story, "Person")
        yield* whenWaiting(access, 1)
        yield* other.query(
          `insert into kb.agent_runs (id, project_id, agent_id, agent_version, status, trigger, context_name, depth)
           select gen_random_uuid(), project_id, agent_id, agent_version, 'queued', trigger, context_name, 0
           from kb.agent_runs where agent_id = '${agent.id}'`
        )
        yield* other.query("commit")
        const [waits] = yield* entriesWhen(story, agent, 1, ({ status }) => status === "pending")
        expect(waits).toMatchObject({ runId: null, reason: expect.stringContaining("maxPendingRuns") })
      })
    )

    it.effect(
      "is nobody's while somebody else counts: an event waits for it, and gets it when it is free",
      () =>
        Effect.gen(function* () {
          const story = yield* newInterposedStory
          const agent = yield* newAgent(story)
          const counts = `select from kb.agents where id = '${agent.id}' for no key update`
          const door = yield* holding(story.access, counts)
          yield* make(story, "Person")
          const waits = ({ runId, status }: Json) => runId === null && status === "pending"
          yield* entriesWhen(story, agent, 1, waits)
          yield* door.query("commit")
          expect(yield* atWork(story, agent)).toEqual(["reaction"])
          yield* make(story, "Person")
          const [, second] = yield* entriesWhen(story, agent, 2, ({ status }) => status !== "completed")
          expect(second).toMatchObject({ runId: null, reason: expect.stringContaining("maxPendingRuns") })
          expect((yield* trigger(story, agent)).status).toBe(429)
        })
    )
  })
})
