/**
 * What a purge leaves of what agents made of an object, and of what was on its way to them.
 */
import { describe, expect, layer } from "@effect/vitest"
import { Effect, Fiber } from "effect"
import { ask, holding, lockOf } from "../testing/owner-rows.ts"
import type { Json, Story } from "../testing/platform.ts"
import { whenWaiting } from "../testing/server-connections.ts"
import { newStoryHere, SharedServer } from "../testing/shared-server.ts"
import {
  endedRuns,
  entriesOf,
  entriesWhen,
  explained,
  feedOf,
  make,
  runsOf,
  watcher
} from "../testing/story-words.ts"
import { naming } from "../testing/naming.ts"

const purging = (story: Story, object: Json) => story.delete(`/objects/${object.id}?purge=true`)

layer(SharedServer.layer, { excludeTestServices: true })((it) => {
  describe("What agents made of a purged object", () => {
    it.effect("is told as purged, by whom and when; nothing of it waits, and nothing is handled again", () =>
      Effect.gen(function* () {
        const story = yield* newStoryHere
        const define = (name: string, overrides: Record<string, unknown> = {}) =>
          story.post("/agents", watcher({ name, ...overrides }))
        const on = (reactionConfig: Record<string, unknown>) => ({
          reactionConfig: { objectTypes: ["Person"], events: ["created"], ...reactionConfig }
        })
        const handled = yield* define("handled")
        const failed = yield* define("failed", { model: { provider: "anthropic", name: "none" } })
        const waiting = yield* define("waiting", on({ debounceMs: 3_600_000 }))
        const where = { properties: [{ property: "age", op: "gte", value: 18 }] }
        const adults = yield* define("adults", on({ where }))
        const others = yield* define("others", on({ objectTypes: ["Company"] }))
        const related = yield* define("related", on({ objectTypes: [], relationshipTypes: ["KNOWS"] }))
        const [eve, bob] = [yield* make(story, "Person", { age: 20 }), yield* make(story, "Company")]
        yield* story.post("/relationships", { type: "KNOWS", fromId: eve.id, toId: bob.id })
        const [ofEve, , ofKnows] = yield* feedOf(story, 3)
        for (const agent of [handled, adults, related]) yield* endedRuns(story, agent, 1)
        yield* entriesWhen(story, failed, 1)
        expect(yield* explained(story, waiting, ofEve)).toMatchObject({ outcome: "waiting" })

        yield* story.delete(`/objects/${eve.id}?purge=true`)
        const { items } = yield* story.get("/purges")
        const purged = (...values: readonly [string, ...ReadonlyArray<string>]) => ({
          outcome: "refused",
          rule: "purged",
          reason: naming(...values),
          entry: null,
          run: null
        })
        for (const agent of [handled, failed, waiting, adults]) {
          expect(yield* explained(story, agent, ofEve)).toMatchObject(purged("admin", items[0].purgedAt))
          expect(yield* story.post(`/agents/${agent.id}/batch-trigger`, { eventIds: [ofEve.id] })).toEqual({
            queued: [],
            skipped: [{ id: ofEve.id, reason: expect.any(String) }]
          })
          expect(yield* entriesOf(story, agent)).toEqual([])
        }
        expect(yield* explained(story, others, ofEve)).toMatchObject({ rule: "objectType" })
        expect(yield* explained(story, related, ofKnows)).toMatchObject(purged("relationship"))
        expect((yield* story.get(`/agents/${failed.id}/dead-letters`)).items).toEqual([])
        expect(yield* runsOf(story, handled)).toHaveLength(1)
        expect(yield* runsOf(story, waiting)).toEqual([])
      })
    )
  })

  describe("What is on its way to an agent when its object is purged", () => {
    it.effect("begins no run where it is released in the same moment", () =>
      Effect.gen(function* () {
        const story = yield* newStoryHere
        const rule = (debounceMs: number) => ({
          reactionConfig: { objectTypes: ["Person"], events: ["created"], debounceMs }
        })
        const agent = yield* story.post("/agents", watcher(rule(3_600_000)))
        const eve = yield* make(story, "Person")
        yield* entriesWhen(story, agent, 1, ({ status }) => status === "pending")
        const release = `select pg_advisory_xact_lock(hashtextextended('tropism.release.${agent.id}', 0))`
        const releaser = yield* holding(story.access, release)
        yield* story.patch(`/agents/${agent.id}`, rule(1))
        yield* ask(
          story.access,
          "update kb.agent_processing_log set due_at = now() where project_id = $1 and status = 'pending'",
          [story.projectId]
        )
        // The purge has taken the entries and waits to keep its record; the release finds them still there.
        const recorder = yield* holding(
          story.access,
          `insert into kb.graph_purges (id, project_id, entity_type, entity_id, object_type, versions, relationships)
           values (gen_random_uuid(), '${story.projectId}', 'graphObject', '${eve.id}', 'Person', 2, 0)`
        )
        const purged = yield* Effect.forkScoped(purging(story, eve))
        yield* whenWaiting(story.access, 1)
        yield* releaser.query("commit")
        // Wakes whoever releases: a second later the purge, which waits for so long, would have let go of the entries.
        yield* story.ask("PUT", "/kill-switch", { stopped: false })
        yield* whenWaiting(story.access, 2)
        yield* recorder.query("rollback")
        expect((yield* Fiber.join(purged)).status).toBe(204)
        // Whoever released it is through when its lock is free.
        yield* holding(story.access, release)
        expect(yield* runsOf(story, agent)).toEqual([])
        expect(yield* entriesOf(story, agent)).toEqual([])
      })
    )

    it.effect("wakes nobody where its change was not heard yet", () =>
      Effect.gen(function* () {
        const story = yield* newStoryHere
        const agent = yield* story.post("/agents", watcher())
        const eve = yield* make(story, "Person")
        yield* endedRuns(story, agent, 1)
        const [ofEve] = yield* feedOf(story, 1)
        expect((yield* purging(story, eve)).status).toBe(204)
        yield* feedOf(story, 2)
        // As if nobody had come to it before the purge.
        yield* ask(
          story.access,
          "update kb.graph_events set dispatched_at = null, position = null where project_id = $1 and id = $2",
          [story.projectId, ofEve.id]
        )
        const ann = yield* make(story, "Person")
        yield* endedRuns(story, agent, 2)
        expect(yield* entriesOf(story, agent)).toMatchObject([{ graphObjectId: ann.id, status: "completed" }])
        expect(yield* explained(story, agent, ofEve)).toMatchObject({ outcome: "refused", rule: "purged" })
      })
    )

    it.effect("begins no run where it is heard in the same moment", () =>
      Effect.gen(function* () {
        const story = yield* newStoryHere
        const agent = yield* story.post("/agents", watcher())
        const held = yield* holding(story.access, `select from kb.agents where id = '${agent.id}' for update`)
        const eve = yield* make(story, "Person")
        // Whoever hears of it has read it, and waits to open its entry.
        yield* whenWaiting(story.access, 1)
        const purged = yield* Effect.forkScoped(purging(story, eve))
        yield* whenWaiting(story.access, 2)
        const claims = yield* holding(story.access, lockOf("claims"))
        yield* held.query("rollback")
        expect((yield* Fiber.join(purged)).status).toBe(204)
        yield* claims.query("commit")
        expect((yield* endedRuns(story, agent, 1)).map(({ status }) => status)).toEqual(["cancelled"])
        expect(yield* entriesOf(story, agent)).toEqual([])
      })
    )

    it.effect("is not begun where its run waits in the queue", () =>
      Effect.gen(function* () {
        const story = yield* newStoryHere
        const agent = yield* story.post("/agents", watcher())
        // No worker takes a run meanwhile.
        const claims = yield* holding(story.access, lockOf("claims"))
        const [eve, ann] = [yield* make(story, "Person"), yield* make(story, "Person")]
        yield* entriesWhen(story, agent, 2, ({ runId }) => runId !== null)
        expect((yield* purging(story, eve)).status).toBe(204)
        yield* claims.query("commit")
        const runs = yield* endedRuns(story, agent, 2)
        expect(
          runs.map(({ errorMessage, startedAt, status }) => [status, startedAt !== null, errorMessage])
        ).toEqual([
          ["cancelled", false, expect.any(String)],
          ["completed", true, null]
        ])
        expect(yield* entriesOf(story, agent)).toMatchObject([{ graphObjectId: ann.id, status: "completed" }])
      })
    )
  })
})
