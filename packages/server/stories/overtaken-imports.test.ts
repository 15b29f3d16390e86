/**
 * What somebody changes while a lockfile is imported is not changed or deleted for what it was before.
 */
import { describe, expect, layer } from "@effect/vitest"
import { Effect } from "effect"
import { fileOf } from "../testing/lockfiles.ts"
import { allOf, importLock } from "../testing/import-words.ts"
import { Interposed, newInterposedStory } from "../testing/interposed.ts"
import type { Json } from "../testing/platform.ts"
import { naming } from "../testing/naming.ts"

const before = fileOf({
  "": { name: "shop", dependencies: { paint: "^1.0.0", rope: "^1.0.0" } },
  "node_modules/paint": { version: "1.0.0" },
  "node_modules/rope": { version: "1.2.0" }
})

/** Rope is gone, glue has come. */
const after = fileOf({
  "": { name: "shop", dependencies: { paint: "^1.0.0", glue: "^1.0.0" } },
  "node_modules/paint": { version: "1.0.0" },
  "node_modules/glue": { version: "1.0.0" }
})

layer(Interposed.layer, { excludeTestServices: true })((it) => {
  describe("An import of a lockfile", () => {
    it.effect("leaves a package that has been given to another lockfile since it was read", () =>
      Effect.gen(function* () {
        const { server } = yield* Interposed
        const story = yield* newInterposedStory
        yield* importLock(story, before)
        const packages = yield* allOf(story, "/objects")
        const rope = packages.find(({ key }) => key === "shop/rope")
        // The import has read which packages there are, and made glue.
        yield* server.interpose(
          "graph.beforeCommit",
          Effect.asVoid(story.patch(`/objects/${rope.id}`, { properties: { lockfile: "boat" } }))
        )
        expect(yield* importLock(story, after)).toEqual({
          type: "failed",
          message: expect.stringMatching(/\b2\b/)
        })
        expect(yield* story.get(`/objects/${rope.id}`)).toMatchObject({
          version: 2,
          properties: { lockfile: "boat" }
        })
        // Read again, it is another lockfile's.
        expect(yield* importLock(story, after)).toMatchObject({ type: "finished", created: 1, deleted: 0 })
        const keys = (yield* allOf(story, "/objects")).map(({ key }: Json) => key)
        expect(keys.toSorted()).toEqual(["shop", "shop/glue", "shop/paint", "shop/rope"])
      })
    )

    it.effect.each<readonly [string, string, Record<string, string>]>([
      ["another range", "shop/paint", { range: "~1.0.0" }],
      ["a dependency that is gone", "shop/rope", { audited: "Ada" }]
    ])("of %s leaves a dependency that was changed since it was read", ([, key, properties]) =>
      Effect.gen(function* () {
        const { server } = yield* Interposed
        const story = yield* newInterposedStory
        yield* importLock(story, before)
        const to = (yield* allOf(story, "/objects")).find((each) => each.key === key)
        const dependency = (yield* allOf(story, "/relationships")).find(({ toId }) => toId === to.id)
        // The import has read which dependencies there are, and made glue.
        yield* server.interpose(
          "graph.beforeCommit",
          Effect.asVoid(story.patch(`/relationships/${dependency.id}`, { properties }))
        )
        const other = after.replace('"paint":"^1.0.0"', '"paint":"^1.0.1"')
        expect(yield* importLock(story, other)).toEqual({
          type: "failed",
          message: naming(2, 1)
        })
        expect((yield* story.get(`/relationships/${dependency.id}`)).properties).toMatchObject(properties)
        // Read again, it is as the file says.
        expect(yield* importLock(story, other)).toMatchObject({ type: "finished", relationshipsDeleted: 1 })
      })
    )
  })
})
