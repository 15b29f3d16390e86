/**
 * An undo never overwrites what somebody did after the cause, and says what it leaves.
 */
import { describe, expect, layer } from "@effect/vitest"
import { Effect } from "effect"
import type { Json, Story } from "../testing/platform.ts"
import { newStoryHere, SharedServer } from "../testing/shared-server.ts"
import { change, make } from "../testing/story-words.ts"
import { approve, updating } from "../testing/suggestion-words.ts"
import { acted, actAgain, itemsOf, objectNow, undoRun } from "../testing/undo-words.ts"
import { naming } from "../testing/naming.ts"

const creating = (key: string) => ({
  tool: "create_object",
  arguments: { type: "Note", key, properties: { by: "agent", n: 1 } }
})

const deleting = (object: Json) => ({ tool: "delete_object", arguments: { objectId: object.id } })

const noteOf = (story: Story, key: string): Effect.Effect<Json> =>
  Effect.map(story.get(`/objects?type=Note&key=${key}`), (page) => page.items[0])

const planned = Effect.fnUntraced(function* (story: Story, run: Json) {
  const answer = yield* undoRun(story, run)
  expect(answer.status).toBe(201)
  return { task: answer.body, items: yield* itemsOf(story, answer.body) }
})

layer(SharedServer.layer)((it) => {
  describe("An undo keeps later changes", () => {
    it.effect("S001-N04 a property that somebody set since stays, and the others go back", () =>
      Effect.gen(function* () {
        const story = yield* newStoryHere
        const ada = yield* make(story, "Person", { age: 1, name: "Ada", mood: "calm", town: "London" })
        const { run } = yield* acted(story, [
          updating(ada, { age: 2, name: "A.", mood: "wild", town: "Paris" })
        ])
        yield* change(story, ada, { age: 36 }, { mood: "calm" })
        const { items, task } = yield* planned(story, run)
        expect(task.payload.counts).toMatchObject({ ready: 1, conflicts: 0, kept: 1 })
        expect(items[ada.id]).toMatchObject({
          status: "ready",
          reason: naming("age", 3),
          properties: [
            { property: "age", status: "conflict", now: 36, back: 1 },
            { property: "mood", status: "unneeded", now: "calm", back: "calm" },
            { property: "name", status: "ready", now: "A.", back: "Ada" },
            { property: "town", status: "ready", now: "Paris", back: "London" }
          ]
        })
        expect((yield* approve(story, task)).status).toBe(200)
        expect((yield* objectNow(story, ada)).properties).toEqual({
          age: 36,
          name: "Ada",
          mood: "calm",
          town: "London"
        })
      })
    )

    it.effect("S001-N04 what a person set between two settings of the run is the last human state", () =>
      Effect.gen(function* () {
        const story = yield* newStoryHere
        const ada = yield* make(story, "Person", { age: 1 })
        const { agent } = yield* acted(story, [updating(ada, { age: 2 })])
        yield* change(story, ada, { age: 36 })
        yield* story.patch(`/agents/${agent.id}`, { role: "again" })
        yield* actAgain(story, agent, 2)
        const plan = yield* story.ask("POST", `/agents/${agent.id}/undo`, { version: 1 })
        const items = yield* itemsOf(story, plan.body)
        expect(items[ada.id]).toMatchObject({ status: "conflict", action: "update" })
        const second = yield* story.ask("POST", `/agents/${agent.id}/undo`, { version: 2 })
        expect((yield* approve(story, second.body)).status).toBe(200)
        expect((yield* objectNow(story, ada)).properties).toEqual({ age: 36 })
      })
    )

    it.effect("S001-N04 what it made stays where somebody has changed it or related something to it", () =>
      Effect.gen(function* () {
        const story = yield* newStoryHere
        const ada = yield* make(story, "Person")
        const { run } = yield* acted(story, ["changed", "related", "alone"].map(creating))
        const [changed, related, alone] = [
          yield* noteOf(story, "changed"),
          yield* noteOf(story, "related"),
          yield* noteOf(story, "alone")
        ]
        yield* change(story, changed, { by: "ada" })
        yield* story.post("/relationships", { type: "WROTE", fromId: ada.id, toId: related.id })
        const { items, task } = yield* planned(story, run)
        expect(task.payload.counts).toMatchObject({ ready: 1, conflicts: 2 })
        expect(items[changed.id]).toMatchObject({ action: "delete", status: "conflict" })
        expect(items[changed.id].reason).toMatch(/\b2\b/)
        expect(items[related.id]).toMatchObject({ action: "delete", status: "conflict" })
        expect(items[related.id].reason).toContain("WROTE")
        expect(items[alone.id]).toMatchObject({ action: "delete", status: "ready" })
        expect((yield* approve(story, task)).body.outcome.undone).toBe(1)
        expect([
          yield* objectNow(story, alone),
          yield* objectNow(story, changed),
          yield* objectNow(story, related)
        ]).toMatchObject([undefined, { version: 2 }, { version: 1 }])
      })
    )

    it.effect(
      "S001-N04 what it deleted stays deleted where another has its key, and its own successor gives way",
      () =>
        Effect.gen(function* () {
          const story = yield* newStoryHere
          const note = (key: string) =>
            story.post("/objects", { type: "Note", key, properties: { by: "ada" } })
          const [taken, replaced] = [yield* note("taken"), yield* note("replaced")]
          const { run } = yield* acted(story, [deleting(taken), deleting(replaced), creating("replaced")])
          yield* note("taken")
          const successor = yield* noteOf(story, "replaced")
          const { items, task } = yield* planned(story, run)
          expect(items[taken.id]).toMatchObject({ action: "restore", status: "conflict" })
          expect(items[taken.id].reason).toMatch(/\bNote\b/)
          expect(items[replaced.id]).toMatchObject({ action: "restore", status: "ready" })
          expect(items[successor.id]).toMatchObject({ action: "delete", status: "ready" })
          expect((yield* approve(story, task)).status).toBe(200)
          expect(yield* noteOf(story, "replaced")).toMatchObject({
            id: replaced.id,
            properties: { by: "ada" }
          })
        })
    )

    it.effect("S001-N04 of what is gone already nothing is undone", () =>
      Effect.gen(function* () {
        const story = yield* newStoryHere
        const [deleted, purged, back, ada] = [
          yield* make(story, "Person", { n: 1 }),
          yield* make(story, "Person", { n: 1 }),
          yield* make(story, "Person", { n: 1 }),
          yield* make(story, "Person", { n: 1 })
        ]
        const all = [deleted, purged, back, ada]
        const { run } = yield* acted(
          story,
          all.map((object) => updating(object, { n: 2 }))
        )
        yield* story.delete(`/objects/${deleted.id}`)
        expect((yield* story.ask("DELETE", `/objects/${purged.id}?purge=true`)).status).toBeLessThan(300)
        yield* change(story, back, { n: 1 })
        const { items, task } = yield* planned(story, run)
        expect(task.payload.counts).toMatchObject({ ready: 1, conflicts: 0, unneeded: 3, kept: 0 })
        expect([deleted, purged, back].map(({ id }) => [items[id].action, items[id].status])).toEqual([
          ["none", "unneeded"],
          ["none", "unneeded"],
          ["none", "unneeded"]
        ])
        expect(items[purged.id].reason).toBeTypeOf("string")
        expect((yield* approve(story, task)).status).toBe(200)
        // Now there is nothing left, and the door says so.
        const again = yield* undoRun(story, run)
        expect([again.status, again.body.reason]).toEqual([409, "state"])
      })
    )
  })

  describe("An undo is approved as it was planned", () => {
    it.effect("S001-N04 when something moved since, nothing is done, and a new plan keeps what moved", () =>
      Effect.gen(function* () {
        const story = yield* newStoryHere
        const [ada, grace] = [
          yield* make(story, "Person", { age: 1 }),
          yield* make(story, "Person", { age: 1 })
        ]
        const { run } = yield* acted(story, [updating(ada, { age: 2 }), updating(grace, { age: 2 })])
        const { task } = yield* planned(story, run)
        yield* change(story, grace, { age: 3 })
        const refused = yield* approve(story, task, { digest: task.digest })
        expect([refused.status, refused.body.reason]).toEqual([409, "outdated"])
        expect(refused.body.detail).toEqual(naming("Person", grace.id, 3, 2))
        expect((yield* objectNow(story, ada)).properties).toEqual({ age: 2 })
        expect((yield* story.get(`/tasks/${task.id}`)).status).toBe("pending")

        const anew = yield* story.post(`/tasks/${task.id}/rerun`)
        expect(anew).toMatchObject({
          id: task.id,
          revision: 2,
          payload: { counts: { ready: 1, conflicts: 1 } }
        })
        expect(anew.digest).not.toBe(task.digest)
        const stale = yield* approve(story, task, { digest: task.digest })
        expect([stale.status, stale.body.reason]).toEqual([409, "digestMismatch"])
        expect((yield* approve(story, anew, { digest: anew.digest })).status).toBe(200)
        expect([
          (yield* objectNow(story, ada)).properties,
          (yield* objectNow(story, grace)).properties
        ]).toEqual([{ age: 1 }, { age: 3 }])
        const late = yield* story.ask("POST", `/tasks/${task.id}/rerun`)
        expect([late.status, late.body.reason]).toEqual([409, "alreadyDecided"])
      })
    )

    it.effect("S001-N04 a relationship made since at what would be deleted is something that moved", () =>
      Effect.gen(function* () {
        const story = yield* newStoryHere
        const ada = yield* make(story, "Person")
        const { run } = yield* acted(story, [creating("made")])
        const { task } = yield* planned(story, run)
        const made = yield* noteOf(story, "made")
        yield* story.post("/relationships", { type: "WROTE", fromId: ada.id, toId: made.id })
        const refused = yield* approve(story, task)
        expect([refused.status, refused.body.reason]).toEqual([409, "outdated"])
        expect(refused.body.detail).toContain("WROTE")
        expect((yield* objectNow(story, made)).version).toBe(1)
      })
    )

    it.effect("S001-N04 a person leaves items out, but nothing that would fall with another", () =>
      Effect.gen(function* () {
        const story = yield* newStoryHere
        const ada = yield* make(story, "Person", { age: 1 })
        const { run } = yield* acted(story, [updating(ada, { age: 2 }), creating("a"), creating("b")])
        const [a, b] = [yield* noteOf(story, "a"), yield* noteOf(story, "b")]
        const { task } = yield* planned(story, run)
        for (const leaveOut of [["x"], [run.id]]) {
          const strange = yield* approve(story, task, { leaveOut })
          expect([strange.status, strange.body.errors[0].pointer]).toEqual([422, "/leaveOut"])
        }
        const nothing = yield* approve(story, task, { leaveOut: [ada.id, a.id, b.id] })
        expect([nothing.status, nothing.body.reason]).toEqual([409, "state"])
        const edited = yield* approve(story, task, { suggestedChanges: { data: { age: 5 } } })
        expect([edited.status, edited.body.errors[0].pointer]).toEqual([422, "/suggestedChanges"])
        const decided = yield* approve(story, task, { leaveOut: [ada.id, a.id] })
        expect(decided.body.outcome).toMatchObject({ undone: 1, leftOut: 2 })
        expect([
          yield* objectNow(story, ada),
          yield* objectNow(story, a),
          yield* objectNow(story, b)
        ]).toMatchObject(
          [{ properties: { age: 2 } }, { version: 1 }, undefined].map((one) => one ?? undefined)
        )
        const items = yield* itemsOf(story, task)
        expect([items[ada.id].leftOut, items[a.id].leftOut, items[b.id].leftOut]).toEqual([true, true, false])
      })
    )

    it.effect("S001-N04 of ten approvals at once one is done", () =>
      Effect.gen(function* () {
        const story = yield* newStoryHere
        const ada = yield* make(story, "Person", { age: 1 })
        const { run } = yield* acted(story, [updating(ada, { age: 2 })])
        const { task } = yield* planned(story, run)
        const answers = yield* Effect.all(
          Array.from({ length: 10 }, () => approve(story, task, { digest: task.digest })),
          { concurrency: 10 }
        )
        expect(answers.map(({ status }) => status).toSorted()).toEqual([200, ...Array(9).fill(409)])
        expect((yield* objectNow(story, ada)).version).toBe(3)
      })
    )
  })
})
