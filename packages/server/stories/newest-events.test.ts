/**
 * The feed read backwards: what happened last, without reading all that happened before.
 */
import { describe, expect, layer } from "@effect/vitest"
import { Effect } from "effect"
import { newStoryHere, SharedServer } from "../testing/shared-server.ts"
import { feedOf, make } from "../testing/story-words.ts"

layer(SharedServer.layer)((it) => {
  describe("Requirement: the newest events are read first by who asks for them", () => {
    it.effect("a page with order=desc goes back from the newest, and its cursor further back", () =>
      Effect.gen(function* () {
        const story = yield* newStoryHere
        for (const type of ["A", "B", "C", "D", "E"]) yield* make(story, type)
        yield* feedOf(story, 5)
        const first = yield* story.get("/events?order=desc&limit=2")
        const second = yield* story.get(`/events?order=desc&limit=2&cursor=${first.nextCursor}`)
        const third = yield* story.get(`/events?order=desc&limit=2&cursor=${second.nextCursor}`)
        const types = [first, second, third].map((page) =>
          page.items.map((event: { readonly objectType: string }) => event.objectType)
        )
        expect(types).toEqual([["E", "D"], ["C", "B"], ["A"]])
        expect(third.nextCursor).toBeNull()
        const after = yield* story.get("/events?order=desc&after=3")
        expect(after.items.map((event: { readonly position: number }) => event.position)).toEqual([5, 4])
        expect((yield* story.ask("GET", "/events?order=up")).status).toBe(422)
      })
    )
  })
})
