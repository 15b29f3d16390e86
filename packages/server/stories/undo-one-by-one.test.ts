/**
 * Run by run an agent's work is taken back: an undo of one is no later edit to the next.
 */
import { describe, expect, layer } from "@effect/vitest"
import { Effect } from "effect"
import type { Json, Story } from "../testing/platform.ts"
import { newStoryHere, SharedServer } from "../testing/shared-server.ts"
import { calling, change, endedRuns, make, type ScriptedCall, watcher } from "../testing/story-words.ts"
import { approve, updating } from "../testing/suggestion-words.ts"
import { itemsOf, objectNow, undoRun } from "../testing/undo-words.ts"
import { naming } from "../testing/naming.ts"

const undone = Effect.fnUntraced(function* (story: Story, run: Json) {
  const plan = yield* undoRun(story, run)
  expect([plan.status, plan.body.payload?.counts]).toMatchObject([201, { conflicts: 0, kept: 0 }])
  expect((yield* approve(story, plan.body, { digest: plan.body.digest })).status).toBe(200)
})

/** One run of an agent of its own, which makes these calls. */
const runOf = Effect.fnUntraced(function* (
  story: Story,
  name: string,
  ...calls: ReadonlyArray<ScriptedCall>
) {
  const agent = yield* story.post(
    "/agents",
    watcher({ name, triggerType: "manual", reactionConfig: undefined, model: calling(...calls) })
  )
  yield* story.post(`/agents/${agent.id}/trigger`, { input: {} })
  const [run] = yield* endedRuns(story, agent, 1)
  return run
})

const makingNote = { tool: "create_object", arguments: { type: "Note", key: "made", properties: { n: 1 } } }

const noteNow = (story: Story) =>
  Effect.map(story.get("/objects?type=Note&key=made"), (page): Json => page.items[0])

layer(SharedServer.layer)((it) => {
  describe("Runs are undone one by one", () => {
    it.effect("S001-N04 newest first brings back the beginning", () =>
      Effect.gen(function* () {
        const story = yield* newStoryHere
        const ada = yield* make(story, "Person", { age: 1 })
        const first = yield* runOf(story, "one", updating(ada, { age: 2, town: "Paris" }))
        const second = yield* runOf(story, "two", updating(ada, { age: 3 }))
        const third = yield* runOf(story, "three", updating(ada, { age: 4, town: null }))
        for (const run of [third, second, first]) yield* undone(story, run)
        expect((yield* objectNow(story, ada)).properties).toEqual({ age: 1 })
      })
    )

    it.effect("S001-N04 what a person set between two runs still stays, and is named", () =>
      Effect.gen(function* () {
        const story = yield* newStoryHere
        const ada = yield* make(story, "Person", { age: 1 })
        const first = yield* runOf(story, "one", updating(ada, { age: 2 }))
        yield* change(story, ada, { age: 36 })
        yield* undone(story, yield* runOf(story, "two", updating(ada, { age: 3 })))
        expect((yield* objectNow(story, ada)).properties).toEqual({ age: 36 })
        const plan = yield* undoRun(story, first)
        expect((yield* itemsOf(story, plan.body))[ada.id]).toMatchObject({
          status: "conflict",
          reason: naming("age", 3)
        })
      })
    )

    it.effect("S001-N04 what one run made, another changed and deleted goes again", () =>
      Effect.gen(function* () {
        const story = yield* newStoryHere
        const first = yield* runOf(story, "one", makingNote)
        const note = yield* noteNow(story)
        const second = yield* runOf(story, "two", updating(note, { n: 2 }), {
          tool: "delete_object",
          arguments: { objectId: note.id }
        })
        expect(yield* objectNow(story, note)).toBe(undefined)
        yield* undone(story, second)
        expect((yield* objectNow(story, note)).properties).toEqual({ n: 1 })
        yield* undone(story, first)
        expect(yield* objectNow(story, note)).toBe(undefined)
      })
    )

    it.effect("S001-N04 what an undo deleted and a person brought back is the person's", () =>
      Effect.gen(function* () {
        const story = yield* newStoryHere
        const run = yield* runOf(story, "one", makingNote)
        const note = yield* noteNow(story)
        yield* undone(story, run)
        const nothing = yield* undoRun(story, run)
        expect([nothing.status, nothing.body.reason]).toEqual([409, "state"])
        yield* story.post(`/objects/${note.id}/restore`)
        const plan = yield* undoRun(story, run)
        expect((yield* itemsOf(story, plan.body))[note.id]).toMatchObject({ status: "conflict" })
      })
    )

    it.effect("S001-N04 a version of an agent is undone after one of its runs was", () =>
      Effect.gen(function* () {
        const story = yield* newStoryHere
        const ada = yield* make(story, "Person", { age: 1 })
        const agent = yield* story.post(
          "/agents",
          watcher({
            triggerType: "manual",
            reactionConfig: undefined,
            model: calling({
              tool: "update_object",
              arguments: { objectId: ada.id, properties: "{{ input.input }}" }
            })
          })
        )
        for (const age of [2, 3]) yield* story.post(`/agents/${agent.id}/trigger`, { input: { age } })
        const runs = yield* endedRuns(story, agent, 2)
        yield* undone(story, runs[1])
        const plan = yield* story.ask("POST", `/agents/${agent.id}/undo`, { version: 1 })
        expect((yield* itemsOf(story, plan.body))[ada.id]).toMatchObject({ status: "ready" })
        expect((yield* approve(story, plan.body)).status).toBe(200)
        expect((yield* objectNow(story, ada)).properties).toEqual({ age: 1 })
      })
    )

    it.effect("S001-N04 whoever asks again gets the plan that waits as the graph is now", () =>
      Effect.gen(function* () {
        const story = yield* newStoryHere
        const ada = yield* make(story, "Person", { age: 1, town: "London" })
        const run = yield* runOf(story, "one", updating(ada, { age: 2, town: "Paris" }))
        const { body: first } = yield* undoRun(story, run)
        const same = yield* undoRun(story, run)
        expect([same.status, same.body]).toEqual([200, first])
        yield* change(story, ada, { age: 36 })
        const anew = yield* undoRun(story, run)
        expect(anew).toMatchObject({
          status: 200,
          body: { id: first.id, revision: 2, payload: { counts: { ready: 1, kept: 1 } } }
        })
        expect((yield* approve(story, anew.body, { digest: anew.body.digest })).status).toBe(200)
        expect((yield* objectNow(story, ada)).properties).toEqual({ age: 36, town: "London" })
      })
    )

    it.effect(
      "S001-N04 of what a person deleted or purged since, nobody says that it is as it was before",
      () =>
        Effect.gen(function* () {
          const story = yield* newStoryHere
          for (const query of ["", "?purge=true"]) {
            const ada = yield* make(story, "Person", { age: 1 })
            const run = yield* runOf(story, `one${query.length}`, updating(ada, { age: 2 }))
            yield* story.delete(`/objects/${ada.id}${query}`)
            const refused = yield* undoRun(story, run)
            expect([refused.status, refused.body.reason]).toEqual([409, "state"])
          }
        })
    )

    it.effect("S001-N04 where a key was taken after the plan, the refusal says to plan anew", () =>
      Effect.gen(function* () {
        const story = yield* newStoryHere
        const note = yield* story.post("/objects", { type: "Note", key: "k", properties: {} })
        const run = yield* runOf(story, "one", { tool: "delete_object", arguments: { objectId: note.id } })
        const { body: task } = yield* undoRun(story, run)
        yield* story.post("/objects", { type: "Note", key: "k", properties: {} })
        const refused = yield* approve(story, task)
        expect([refused.status, refused.body.reason]).toEqual([409, "outdated"])
      })
    )
  })
})
