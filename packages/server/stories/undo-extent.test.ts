/**
 * How far an undo reaches: below a run, into relationships and marks, and up to a bound.
 */
import { describe, expect, layer } from "@effect/vitest"
import { Effect } from "effect"
import { ask } from "../testing/owner-rows.ts"
import type { Json } from "../testing/platform.ts"
import { newStoryHere, SharedServer } from "../testing/shared-server.ts"
import { begin, boss, endedInTime, handingOver, spawning, worker } from "../testing/sub-agent-words.ts"
import { make } from "../testing/story-words.ts"
import { approve, updating } from "../testing/suggestion-words.ts"
import { acted, itemsOf, objectNow, undoRun } from "../testing/undo-words.ts"
import { naming } from "../testing/naming.ts"

layer(SharedServer.layer)((it) => {
  describe("How far an undo reaches", () => {
    it.effect("S001-F08 a run is undone with the runs that it spawned", () =>
      Effect.gen(function* () {
        const story = yield* newStoryHere
        const [ada, grace] = [
          yield* make(story, "Person", { age: 1 }),
          yield* make(story, "Person", { age: 1 })
        ]
        yield* story.post("/agents", worker("helper", handingOver(updating(grace, { age: 2 }))))
        const chief = yield* boss(story, [updating(ada, { age: 2 }), spawning("helper")])
        const run = yield* endedInTime(story, yield* begin(story, chief))
        expect(run.status).toBe("completed")
        const plan = (yield* undoRun(story, run)).body
        expect(plan.payload.agents.map(({ name }: Json) => name)).toEqual(["boss", "helper"])
        expect(Object.keys(yield* itemsOf(story, plan)).toSorted()).toEqual([ada.id, grace.id].toSorted())
        yield* approve(story, plan)
        expect([
          (yield* objectNow(story, ada)).properties,
          (yield* objectNow(story, grace)).properties
        ]).toEqual([{ age: 1 }, { age: 1 }])
      })
    )

    it.effect(
      "a run says whether it or a run below it changed anything, which is what an undo takes back",
      () =>
        Effect.gen(function* () {
          const story = yield* newStoryHere
          const ada = yield* make(story, "Person", { age: 1 })
          yield* story.post("/agents", worker("helper", handingOver(updating(ada, { age: 2 }))))
          const chief = yield* boss(story, [spawning("helper")])
          const run = yield* endedInTime(story, yield* begin(story, chief))
          expect(yield* story.get(`/runs/${run.id}/objects`)).toMatchObject({ wrote: [], changedGraph: true })
          expect((yield* undoRun(story, run)).status).toBe(201)
        })
    )

    it.effect("S001-N04 a value that came from an untrusted source comes back untrusted", () =>
      Effect.gen(function* () {
        const story = yield* newStoryHere
        const ada = yield* story.post("/objects", {
          type: "Person",
          properties: { age: 1, rumour: "tall" },
          untrusted: ["rumour"]
        })
        const { run } = yield* acted(story, [updating(ada, { rumour: "short" })])
        expect((yield* objectNow(story, ada)).untrusted ?? []).toEqual([])
        const plan = (yield* undoRun(story, run)).body
        const items = yield* itemsOf(story, plan)
        expect(items[ada.id].properties).toEqual([
          { property: "rumour", status: "ready", now: "short", back: "tall", untrusted: true }
        ])
        yield* approve(story, plan)
        expect(yield* objectNow(story, ada)).toMatchObject({
          properties: { age: 1, rumour: "tall" },
          untrusted: ["rumour"]
        })
      })
    )

    it.effect(
      "S001-F08 more than a thousand objects are not undone at once, and the door says how many",
      () =>
        Effect.gen(function* () {
          const story = yield* newStoryHere
          const ada = yield* make(story, "Person", { age: 1 })
          const { run } = yield* acted(story, [updating(ada, { age: 2 })])
          // What a run can do in hours, written at once: events are all that the bound is about.
          yield* ask(
            story.access,
            `insert into kb.graph_events (id, project_id, entity_type, object_type, entity_id, version, type, changed_properties, snapshot,
             actor_type, actor_id, run_id, root_event_id, depth, dispatched_at)
           select gen_random_uuid(), $1::uuid, 'graphObject', 'Person', gen_random_uuid(), 1, 'created', '{}', '{}', 'agent', run.agent_id::text,
             run.id, gen_random_uuid(), 1, now() from kb.agent_runs run, generate_series(1, 1000) where run.id = $2::uuid`,
            [story.projectId, run.id]
          )
          const answer = yield* undoRun(story, run)
          expect([answer.status, answer.body.reason]).toEqual([409, "state"])
          expect(answer.body.detail).toEqual(naming(1001, 1000))
        })
    )
  })
})
