/**
 * A lockfile imported where people have written: what is theirs stays, and what stands in its way is told.
 */
import { describe, expect, layer } from "@effect/vitest"
import { jsonBounds } from "@tropism/domain/json"
import { Effect } from "effect"
import { fileOf } from "../testing/lockfiles.ts"
import { allOf, importLock } from "../testing/import-words.ts"
import { countRows } from "../testing/problem-words.ts"
import { newStoryHere, SharedServer } from "../testing/shared-server.ts"
import { after, before } from "../testing/shop-lockfiles.ts"
import { naming } from "../testing/naming.ts"

layer(SharedServer.layer, { excludeTestServices: true })((it) => {
  describe("An import of a lockfile", () => {
    it.effect("leaves alone what people have noted on a package, and the packages of other files", () =>
      Effect.gen(function* () {
        const story = yield* newStoryHere
        yield* importLock(story, before)
        yield* importLock(story, fileOf({ "": { name: "other" }, "node_modules/rope": { version: "9.0.0" } }))
        const paint = (yield* story.get("/objects?key=shop/paint")).items[0]
        yield* story.patch(`/objects/${paint.id}`, { properties: { reviewedBy: "Ada", license: "WRONG" } })
        expect(yield* importLock(story, after)).toMatchObject({ updated: 1, deleted: 1 })
        expect((yield* story.get(`/objects/${paint.id}`)).properties).toMatchObject({
          version: "1.1.0",
          license: "MIT",
          reviewedBy: "Ada"
        })
        const others = (yield* allOf(story, "/objects")).filter(
          (object) => object.properties.lockfile === "other"
        )
        expect(others.map(({ key, version }) => [key, version]).toSorted()).toEqual([
          ["other", 1],
          ["other/rope", 1]
        ])
      })
    )

    it.effect(
      "leaves alone what people have noted on a dependency, and what they have related themselves",
      () =>
        Effect.gen(function* () {
          const story = yield* newStoryHere
          yield* importLock(story, before)
          const byKey = new Map((yield* allOf(story, "/objects")).map(({ id, key }) => [key, id]))
          const toOil = (yield* allOf(story, "/relationships")).find(
            ({ toId }) => toId === byKey.get("shop/oil")
          )
          yield* story.patch(`/relationships/${toOil.id}`, { properties: { audited: "Ada" } })
          // A package may depend on what is no package of the file, even where it has the key of one.
          const [store, namesake, boat] = [
            yield* story.post("/objects", { type: "Service", key: "db" }),
            yield* story.post("/objects", { type: "Service", key: "shop/oil" }),
            yield* story.post("/objects", { type: "Package", key: "boat", properties: { lockfile: "boat" } })
          ]
          const paint = byKey.get("shop/paint")
          for (const { id } of [store, namesake, boat])
            yield* story.post("/relationships", { type: "DEPENDS_ON", fromId: paint, toId: id })

          const unchanged = {
            type: "finished",
            updated: 0,
            relationshipsCreated: 0,
            relationshipsUpdated: 0,
            relationshipsDeleted: 0
          }
          const kept = yield* allOf(story, "/relationships")
          expect(kept).toHaveLength(7)
          expect(yield* importLock(story, before)).toMatchObject(unchanged)
          expect(yield* allOf(story, "/relationships")).toEqual(kept)
          // What the file says is put right beside what people say.
          expect(yield* importLock(story, before.replace('"oil":"*"', '"oil":"^3.0.0"'))).toMatchObject({
            ...unchanged,
            relationshipsUpdated: 1
          })
          expect((yield* story.get(`/relationships/${toOil.id}`)).properties).toEqual({
            kind: "dependency",
            range: "^3.0.0",
            audited: "Ada"
          })
        })
    )

    it.effect(
      "leaves alone what people have related within the file, as long as both packages are there",
      () =>
        Effect.gen(function* () {
          const story = yield* newStoryHere
          yield* importLock(story, before)
          const byKey = new Map((yield* allOf(story, "/objects")).map(({ id, key }) => [key, id]))
          const relate = (from: string, to: string) =>
            story.post("/relationships", {
              type: "DEPENDS_ON",
              fromId: byKey.get(from),
              toId: byKey.get(to),
              properties: { why: "It is sold with it" }
            })
          const own = yield* relate("shop/nail", "shop/oil")
          const ending = yield* relate("shop/rope", "shop/nail")
          expect(yield* importLock(story, before)).toMatchObject({
            type: "finished",
            relationshipsDeleted: 0
          })
          expect(yield* story.get(`/relationships/${ending.id}`)).toEqual(ending)
          expect(yield* importLock(story, after)).toMatchObject({
            type: "finished",
            deleted: 1,
            relationshipsDeleted: 1
          })
          expect(yield* story.get(`/relationships/${own.id}`)).toEqual(own)
          expect((yield* story.ask("GET", `/relationships/${ending.id}`)).status).toBe(404)
        })
    )

    it.effect(
      "takes over what somebody has made of the file's packages by hand, with what stands there",
      () =>
        Effect.gen(function* () {
          const story = yield* newStoryHere
          const byHand = (key: string, properties = {}) =>
            story.post("/objects", { type: "Package", key, properties })
          const paint = yield* byHand("shop/paint", { reviewedBy: "Ada", version: "0.9.0", lockfile: null })
          const oil = yield* byHand("shop/oil")
          const ends = { fromId: paint.id, toId: oil.id }
          const uses = yield* story.post("/relationships", {
            type: "DEPENDS_ON",
            ...ends,
            properties: { audited: "Ada" }
          })
          expect(yield* importLock(story, before)).toEqual({
            type: "finished",
            created: 3,
            updated: 2,
            deleted: 0,
            unchanged: 0,
            relationshipsCreated: 3,
            relationshipsUpdated: 1,
            relationshipsDeleted: 0
          })
          expect((yield* story.get(`/objects/${paint.id}`)).properties).toMatchObject({
            lockfile: "shop",
            version: "1.0.0",
            reviewedBy: "Ada"
          })
          expect((yield* story.get(`/relationships/${uses.id}`)).properties).toEqual({
            kind: "dependency",
            range: "*",
            audited: "Ada"
          })
          expect(yield* importLock(story, before)).toMatchObject({
            type: "finished",
            updated: 0,
            unchanged: 5
          })
        })
    )

    it.effect("writes nothing where a key of the file is another lockfile's, and says whose it is", () =>
      Effect.gen(function* () {
        const story = yield* newStoryHere
        yield* importLock(story, before)
        const glue = yield* story.post("/objects", {
          type: "Package",
          key: "shop/glue",
          properties: { lockfile: "boat" }
        })
        const rows = yield* countRows(story)
        const refusal = {
          type: "failed",
          message: naming("shop/glue", "boat")
        }
        expect(yield* importLock(story, after)).toEqual(refusal)
        expect(yield* countRows(story)).toEqual(rows)
        const nail = (yield* story.get("/objects?key=shop/nail")).items[0]
        yield* story.patch(`/objects/${nail.id}`, { properties: { lockfile: "boat" } })
        expect(yield* importLock(story, after)).toEqual({
          type: "failed",
          message: naming("shop/glue", "boat", 1)
        })
        yield* story.patch(`/objects/${nail.id}`, { properties: { lockfile: "shop" } })
        yield* story.delete(`/objects/${glue.id}`)
        expect(yield* importLock(story, after)).toMatchObject({ type: "finished", created: 1, deleted: 1 })
      })
    )

    it.effect("says where there is no room for what the file says", () =>
      Effect.gen(function* () {
        const story = yield* newStoryHere
        yield* importLock(story, before)
        const paint = (yield* story.get("/objects?key=shop/paint")).items[0]
        yield* story.patch(`/objects/${paint.id}`, {
          properties: { note: "x".repeat(jsonBounds.maxObjectBytes - 300) }
        })
        const longer = before.replace(
          '"license":"MIT"',
          `"license":"MIT","deprecated":"${"use oil ".repeat(50)}"`
        )
        expect(yield* importLock(story, longer)).toEqual({
          type: "failed",
          message: naming("shop/paint", /\d/)
        })
        yield* story.patch(`/objects/${paint.id}`, { properties: { note: null } })
        expect(yield* importLock(story, longer)).toMatchObject({ type: "finished", updated: 1 })
      })
    )
  })
})
