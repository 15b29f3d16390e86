/**
 * The names of properties are in one order, whichever writer puts them in it: by code point, as the database has them.
 */
import { describe, expect, layer } from "@effect/vitest"
import { Effect } from "effect"
import { ask } from "../testing/owner-rows.ts"
import type { Json, Story } from "../testing/platform.ts"
import { newStoryHere, SharedServer } from "../testing/shared-server.ts"
import { feedOf } from "../testing/story-words.ts"

/** To JavaScript the second comes before the first. */
const [tilde, smile] = ["～a", "😀b"] as const
const names = [tilde, smile]
const valued = (value: number) => ({ [smile]: value, [tilde]: value })

const expectVerified = (story: Story) =>
  Effect.map(story.get("/verify"), (found: Json) => expect(found.differences).toEqual([]))

layer(SharedServer.layer, { excludeTestServices: true })((it) => {
  describe("Names of properties", () => {
    it.effect("are told in one order by whatever changes them", () =>
      Effect.gen(function* () {
        const story = yield* newStoryHere
        const [a, b] = [
          yield* story.post("/objects", { type: "Note", properties: valued(1) }),
          yield* story.post("/objects", { type: "Note" })
        ]
        yield* story.patch(`/objects/${a.id}`, { properties: valued(2) })
        const ends = { fromId: a.id, toId: b.id }
        const link = yield* story.post("/relationships", { type: "KNOWS", ...ends, properties: valued(1) })
        yield* story.patch(`/relationships/${link.id}`, { properties: valued(2) })
        const told = (yield* feedOf(story, 5)).map(({ changedProperties }) => changedProperties)
        expect(told).toEqual([names, [], names, names, names])
        yield* expectVerified(story)
        // An event of a server that had another order names what changed all the same.
        yield* ask(
          story.access,
          "update kb.graph_events set changed_properties = $2 where project_id = $1 and type = 'updated'",
          [story.projectId, [smile, tilde]]
        )
        yield* expectVerified(story)
      })
    )

    it.effect("are kept in it as marks, so that nothing is changed by saying again what is so", () =>
      Effect.gen(function* () {
        const story = yield* newStoryHere
        const note = { properties: valued(1), untrusted: true }
        const made = yield* story.post("/objects", { type: "Note", ...note })
        expect(made.untrusted).toEqual(names)
        expect(yield* story.patch(`/objects/${made.id}`, note)).toEqual(made)
        // So were they kept by a server that had another order.
        yield* ask(story.access, "update kb.graph_objects set untrusted = $2 where id = $1", [
          made.id,
          [smile, tilde]
        ])
        expect((yield* story.patch(`/objects/${made.id}`, note)).version).toBe(1)
      })
    )
  })
})
