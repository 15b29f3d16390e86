/**
 * How the agents of a project keep up with the graph, read at once for all of them.
 */
import { describe, expect, layer } from "@effect/vitest"
import { Effect } from "effect"
import { eventually } from "../testing/platform.ts"
import { newStoryHere, SharedServer } from "../testing/shared-server.ts"
import { make, saying, silentFor, watcher } from "../testing/story-words.ts"

layer(SharedServer.layer)((it) => {
  describe("Requirement: a person sees which agent does not keep up", () => {
    it.effect("each agent that reacts is told with what waits, works and failed for good", () =>
      Effect.gen(function* () {
        const story = yield* newStoryHere
        expect(yield* story.get("/reactions")).toEqual({ items: [], nextCursor: null })
        const slow = yield* story.post(
          "/agents",
          watcher({
            name: "slow",
            model: silentFor(600_000),
            reactionConfig: { objectTypes: ["Person"], events: ["created"], maxConcurrency: 1 }
          })
        )
        const failing = yield* story.post(
          "/agents",
          watcher({ name: "failing", model: { provider: "anthropic", name: "none" } })
        )
        const deaf = yield* story.post("/agents", watcher({ name: "deaf", enabled: false }))
        yield* story.post(
          "/agents",
          watcher({ name: "asked", triggerType: "manual", reactionConfig: null, model: saying("Here.") })
        )
        yield* make(story, "Person")
        yield* make(story, "Person")
        const { items } = yield* eventually(
          story.get("/reactions"),
          (page) =>
            page.items[2].working === 1 && page.items[2].waiting === 1 && page.items[1].deadLetters === 2
        )
        expect(items).toMatchObject([
          { id: deaf.id, agentName: "deaf", enabled: false, waiting: 0, working: 0, newest: null },
          {
            id: failing.id,
            waiting: 0,
            waitingSince: null,
            deadLetters: 2,
            newest: { status: "failed", createdAt: expect.any(String) }
          },
          {
            id: slow.id,
            enabled: true,
            disabledReason: null,
            objectTypes: ["Person"],
            waitingSince: expect.any(String),
            deadLetters: 0
          }
        ])
        const page = yield* story.get("/reactions?limit=2")
        expect(page.items.map((line: { readonly id: string }) => line.id)).toEqual([deaf.id, failing.id])
        expect((yield* story.get(`/reactions?cursor=${page.nextCursor}`)).items).toMatchObject([
          { id: slow.id }
        ])
        expect((yield* (yield* newStoryHere).get("/reactions")).items).toEqual([])
      })
    )
  })
})
