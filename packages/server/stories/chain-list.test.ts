/**
 * The list of chains: what followed from what, a line for each, the newest root first.
 */
import { describe, expect, layer } from "@effect/vitest"
import { Effect } from "effect"
import { answering, chainAtRest, chainOf, limitChains, rootOf } from "../testing/chain-words.ts"
import { newStoryHere, SharedServer } from "../testing/shared-server.ts"
import { make, saying, watcher } from "../testing/story-words.ts"

layer(SharedServer.layer)((it) => {
  describe("Requirement: what followed from an event is found without knowing the event", () => {
    it.effect("S001-R04 each chain in which an agent ran is told in a line that agrees with the whole", () =>
      Effect.gen(function* () {
        const story = yield* newStoryHere
        expect(yield* story.get("/chains")).toEqual({ items: [], nextCursor: null })
        yield* answering(story, "Person", ["Note"])
        yield* answering(story, "Note", [])
        yield* make(story, "Unheard")
        const first = yield* rootOf(story, yield* make(story, "Person"))
        yield* chainAtRest(story, first)
        const second = yield* rootOf(story, yield* make(story, "Note"))
        yield* chainAtRest(story, second)

        const { items } = yield* story.get("/chains")
        expect(items.map((chain: { readonly id: string }) => chain.id)).toEqual([second, first])
        for (const line of items) {
          const whole = yield* chainOf(story, line.id)
          expect(line).toEqual({
            id: whole.rootEventId,
            rootEvent: whole.rootEvent,
            agents: line.id === first ? ["Note-to-", "Person-to-Note"] : ["Note-to-"],
            use: whole.use,
            events: whole.counts.events,
            runs: whole.counts.runs,
            openRuns: 0,
            beganAt: whole.rootEvent.createdAt,
            isStopped: false
          })
        }
        const page = yield* story.get("/chains?limit=1")
        expect(page.items).toEqual([items[0]])
        expect((yield* story.get(`/chains?limit=1&cursor=${page.nextCursor}`)).items).toEqual([items[1]])
        expect((yield* (yield* newStoryHere).get("/chains")).items).toEqual([])
      })
    )

    it.effect("S001-R04 it says which were stopped, and by whom one was begun that no event began", () =>
      Effect.gen(function* () {
        const story = yield* newStoryHere
        yield* limitChains(story, { maxDepth: 1 })
        yield* answering(story, "Person", ["Person"])
        const root = yield* rootOf(story, yield* make(story, "Person"))
        yield* chainAtRest(story, root)
        const asked = yield* story.post(
          "/agents",
          watcher({ name: "asked", triggerType: "manual", reactionConfig: null, model: saying("Here.") })
        )
        const run = yield* story.post(`/agents/${asked.id}/trigger`)
        const { items } = yield* story.get("/chains")
        expect(items).toMatchObject([
          {
            id: run.id,
            rootEvent: null,
            agents: ["asked"],
            events: 0,
            runs: 1,
            beganAt: run.createdAt,
            isStopped: false
          },
          { id: root, rootEvent: { id: root }, events: 2, isStopped: true }
        ])
      })
    )
  })
})
