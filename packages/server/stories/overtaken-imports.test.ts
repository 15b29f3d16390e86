/**
 * A package that somebody changes while a lockfile is imported is not deleted for what it was before.
 */
import { describe, expect, layer } from "@effect/vitest"
import { Effect } from "effect"
import { fileOf } from "../src/graph/lockfiles-for-tests.ts"
import { allOf, importLock } from "../testing/import-words.ts"
import { Interposed, newInterposedStory } from "../testing/interposed.ts"
import type { Json } from "../testing/platform.ts"

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
          message: expect.stringMatching(
            /^The graph changed while the file was imported: .*version.*\. Import the file again\.$/
          )
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
  })
})
