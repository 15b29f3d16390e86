/**
 * Versions of objects and relationships: expected, kept, restored.
 */
import { describe, expect, layer } from "@effect/vitest"
import { Effect } from "effect"
import { expectProblem } from "../testing/problem-words.ts"
import { newStoryHere, SharedServer } from "../testing/shared-server.ts"
import { endedRuns, feedOf, make, watcher } from "../testing/story-words.ts"
import type { Story } from "../testing/platform.ts"

const nobody = "00000000-0000-7000-8000-000000000000"

/** Two people of whom one knows the other. */
const acquaintance = Effect.gen(function* () {
  const story = yield* newStoryHere
  const ada = yield* make(story, "Person", { name: "Ada" })
  const bob = yield* make(story, "Person", { name: "Bob" })
  const knows = yield* story.post("/relationships", {
    type: "KNOWS",
    fromId: ada.id,
    toId: bob.id,
    properties: { since: 1990, how: { place: "school" } }
  })
  return { story, ada, bob, knows }
})

const send = (story: Story, method: string, path: string, body: unknown, headers: Record<string, string>) =>
  story.send(method, `/api/projects/${story.projectId}${path}`, body, headers)

layer(SharedServer.layer, { excludeTestServices: true })((it) => {
  describe("A relationship", () => {
    it.effect("is changed by a merge patch, and each change is a version and an event", () =>
      Effect.gen(function* () {
        const { story, knows, ada, bob } = yield* acquaintance
        const changed = yield* story.patch(`/relationships/${knows.id}`, {
          properties: { since: null, how: { year: 3 }, close: true }
        })
        expect(changed).toMatchObject({
          id: knows.id,
          type: "KNOWS",
          fromId: ada.id,
          toId: bob.id,
          version: 2,
          properties: { how: { place: "school", year: 3 }, close: true }
        })
        expect(yield* story.get(`/relationships/${knows.id}`)).toEqual(changed)
        const { items } = yield* story.get(`/relationships/${knows.id}/history`)
        expect(items).toMatchObject([
          { version: 2, type: "updated", properties: changed.properties, actorType: "user" },
          { version: 1, type: "created", properties: knows.properties, actorType: "user" }
        ])
        const events = yield* feedOf(story, 4)
        expect(events.at(-1)).toMatchObject({
          id: items[0].eventId,
          entityType: "relationship",
          type: "updated",
          version: 2,
          changedProperties: ["close", "how", "since"],
          snapshot: { fromId: ada.id, toId: bob.id, properties: changed.properties }
        })
      })
    )

    it.effect("that is patched to what it is has no new version and no event", () =>
      Effect.gen(function* () {
        const { story, knows } = yield* acquaintance
        const same = yield* story.patch(`/relationships/${knows.id}`, {
          properties: { gone: null, how: { place: "school" } }
        })
        expect(same).toEqual(knows)
        expect((yield* story.get(`/relationships/${knows.id}/history`)).items).toHaveLength(1)
        yield* make(story, "Last")
        expect((yield* feedOf(story, 4)).map((event) => event.objectType)).toEqual([
          "Person",
          "Person",
          "KNOWS",
          "Last"
        ])
      })
    )

    it.effect("has a history that is readable when it is deleted, by itself or with its object", () =>
      Effect.gen(function* () {
        const { story, knows, ada, bob } = yield* acquaintance
        const likes = yield* story.post("/relationships", { type: "LIKES", fromId: bob.id, toId: ada.id })
        yield* story.delete(`/relationships/${likes.id}`)
        yield* story.delete(`/objects/${ada.id}`)
        for (const { id } of [likes, knows]) {
          expectProblem(yield* story.ask("GET", `/relationships/${id}`), 404)
          expect((yield* story.get(`/relationships/${id}/history`)).items).toMatchObject([
            { version: 2, type: "deleted" },
            { version: 1, type: "created" }
          ])
        }
        expectProblem(yield* story.ask("GET", `/relationships/${nobody}/history`), 404)
      })
    )
  })

  describe("An expected version", () => {
    it.effect("is told as an ETag by every read and write, and taken as If-Match or in the body", () =>
      Effect.gen(function* () {
        const { story, ada, knows } = yield* acquaintance
        for (const path of [`/relationships/${knows.id}`, `/objects/${ada.id}`]) {
          const patch = (properties: Record<string, unknown>, headers: Record<string, string>, more = {}) =>
            send(story, "PATCH", path, { properties, ...more }, headers)
          expect((yield* story.ask("GET", path)).headers.get("etag")).toBe('"1"')
          const second = yield* patch({ x: 1 }, { "if-match": '"1"' })
          expect([second.status, second.body.version, second.headers.get("etag")]).toEqual([200, 2, '"2"'])
          for (const stale of [
            yield* patch({ x: 2 }, {}, { expectedVersion: 1 }),
            yield* patch({ x: 1 }, {}, { expectedVersion: 1 }),
            yield* patch({ x: 2 }, {}, { expectedVersion: 9007199254740991 })
          ]) {
            expectProblem(stale, 409)
            expect(stale.body).toMatchObject({
              reason: "version",
              detail: expect.stringMatching(/\b2\b/)
            })
          }
          for (const stale of [
            yield* patch({ x: 2 }, { "if-match": '"1"' }),
            yield* patch({ x: 2 }, { "if-match": '"1"' }, { expectedVersion: 1 }),
            yield* send(story, "DELETE", path, undefined, { "if-match": '"1"' })
          ]) {
            expectProblem(stale, 412)
            expect(stale.body.detail).toMatch(/\b2\b/)
          }
          expect((yield* patch({ x: 2 }, { "if-match": "*" })).body.version).toBe(3)
          expect((yield* patch({ x: 3 }, { "if-match": "W/3" }, { expectedVersion: 3 })).body.version).toBe(4)
          expectProblem(yield* patch({ x: 4 }, { "if-match": '"4"' }, { expectedVersion: 3 }), 422)
          for (const tag of ['"a", "b"', '"4', '4"'])
            expectProblem(yield* patch({ x: 4 }, { "if-match": tag }), 422, "if-match")
          const gone = yield* send(story, "DELETE", path, undefined, { "if-match": '"4"' })
          expect(gone.status).toBe(204)
        }
      })
    )

    it.effect("lets one of twenty win that change the same version at once", () =>
      Effect.gen(function* () {
        const { story, ada } = yield* acquaintance
        const answers = yield* Effect.forEach(
          Array.from({ length: 20 }, (_, number) => number),
          (number) =>
            story.ask("PATCH", `/objects/${ada.id}`, { properties: { number }, expectedVersion: 1 }),
          { concurrency: 20 }
        )
        expect(answers.map(({ status }) => status).toSorted()).toEqual([200, ...Array(19).fill(409)])
        expect((yield* story.get(`/objects/${ada.id}/history`)).items).toHaveLength(2)
      })
    )

    it.effect("is not needed: patches of different properties at once are all there in the end", () =>
      Effect.gen(function* () {
        const { story, ada, knows } = yield* acquaintance
        for (const path of [`/objects/${ada.id}`, `/relationships/${knows.id}`]) {
          const names = Array.from({ length: 20 }, (_, number) => `p${String(number).padStart(2, "0")}`)
          yield* Effect.forEach(names, (name) => story.patch(path, { properties: { [name]: name } }), {
            concurrency: 20
          })
          const after = yield* story.get(path)
          expect(after.version).toBe(21)
          expect(Object.keys(after.properties)).toEqual(expect.arrayContaining(names))
          const { items } = yield* story.get(`${path}/history?limit=100`)
          expect(items.map((version: { version: number }) => version.version)).toEqual(
            Array.from({ length: 21 }, (_, number) => 21 - number)
          )
        }
      })
    )
  })

  describe("What is deleted", () => {
    it.effect("comes back as a new version, with the relationships that went with it", () =>
      Effect.gen(function* () {
        const { story, ada, bob, knows } = yield* acquaintance
        const likes = yield* story.post("/relationships", { type: "LIKES", fromId: bob.id, toId: ada.id })
        yield* story.delete(`/relationships/${likes.id}`)
        yield* story.delete(`/objects/${ada.id}`)
        const restored = yield* story.post(`/objects/${ada.id}/restore`)
        expect(restored).toMatchObject({ ...ada, version: 3, updatedAt: expect.any(String) })
        expect(yield* story.get(`/objects/${ada.id}`)).toEqual(restored)
        expect(yield* story.get(`/relationships/${knows.id}`)).toMatchObject({
          version: 3,
          properties: knows.properties
        })
        // It had been deleted before, and for a reason of its own.
        expectProblem(yield* story.ask("GET", `/relationships/${likes.id}`), 404)
        const events = yield* feedOf(story, 9)
        expect(events.slice(-2)).toMatchObject([
          {
            entityId: ada.id,
            type: "created",
            version: 3,
            changedProperties: ["name"],
            snapshot: { properties: ada.properties }
          },
          { entityId: knows.id, type: "created", version: 3, changedProperties: ["how", "since"] }
        ])
        expectProblem(yield* story.ask("POST", `/objects/${ada.id}/restore`), 404)
        expectProblem(yield* story.ask("POST", `/objects/${nobody}/restore`), 404)
        expect((yield* story.post(`/relationships/${likes.id}/restore`)).version).toBe(3)
      })
    )

    it.effect("wakes agents that listen for what is created, once", () =>
      Effect.gen(function* () {
        const story = yield* newStoryHere
        const agent = yield* story.post("/agents", watcher())
        const person = yield* make(story, "Person")
        yield* endedRuns(story, agent, 1)
        yield* story.delete(`/objects/${person.id}`)
        yield* story.post(`/objects/${person.id}/restore`)
        const runs = yield* endedRuns(story, agent, 2)
        expect(runs.map((run) => run.trigger.events[0].version)).toEqual([1, 3])
      })
    )

    it.effect("stays deleted when its place was taken, and that is said", () =>
      Effect.gen(function* () {
        const { story, ada, bob, knows } = yield* acquaintance
        const first = yield* story.post("/objects", { type: "Person", key: "eve" })
        yield* story.delete(`/objects/${first.id}`)
        const second = yield* story.post("/objects", { type: "Person", key: "eve" })
        const taken = yield* story.ask("POST", `/objects/${first.id}/restore`)
        expectProblem(taken, 409)
        expect(taken.body.reason).toBe("keyTaken")
        yield* story.delete(`/objects/${second.id}`)
        expect((yield* story.post(`/objects/${first.id}/restore`)).key).toBe("eve")

        yield* story.delete(`/relationships/${knows.id}`)
        yield* story.post("/relationships", { type: "KNOWS", fromId: ada.id, toId: bob.id })
        const exists = yield* story.ask("POST", `/relationships/${knows.id}/restore`)
        expectProblem(exists, 409)
        expect(exists.body.reason).toBe("relationshipExists")
        yield* story.delete(`/objects/${bob.id}`)
        const dangling = yield* story.ask("POST", `/relationships/${knows.id}/restore`)
        expectProblem(dangling, 409)
        expect(dangling.body.reason).toBe("state")
      })
    )
  })
})
