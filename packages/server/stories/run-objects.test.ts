/**
 * What a run read, wrote and suggests is told of it, and nothing of any other.
 */
import { describe, expect, layer } from "@effect/vitest"
import { Effect } from "effect"
import { scripted } from "../testing/platform.ts"
import { expectProblem } from "../testing/problem-words.ts"
import { newStoryHere, SharedServer } from "../testing/shared-server.ts"
import { change, make, watcher } from "../testing/story-words.ts"
import { approve } from "../testing/suggestion-words.ts"

layer(SharedServer.layer, { excludeTestServices: true })((it) => {
  describe("The objects of a run", () => {
    it.effect("are what it read, in the versions that it saw, what it wrote, and what it suggests", () =>
      Effect.gen(function* () {
        const story = yield* newStoryHere
        const ada = yield* story.post("/objects", { type: "Person", key: "ada", properties: { age: 1 } })
        const agent = yield* story.post("/agents", {
          ...watcher({
            executionMode: "execute",
            model: scripted([
              {
                when: "step == 0",
                calls: [
                  { tool: "get_object", arguments: { objectId: ada.id } },
                  { tool: "create_object", arguments: { type: "Note", key: "n", properties: {} } },
                  {
                    tool: "update_object",
                    arguments: { objectId: ada.id, properties: { age: 3 }, suggest: true }
                  }
                ]
              },
              { say: "Done." }
            ])
          }),
          triggerType: "manual",
          reactionConfig: null
        })
        const run = yield* story.post(`/agents/${agent.id}/trigger`)
        const objects = story.get(`/runs/${run.id}/objects`)
        const seen = yield* objects
        expect(seen.read).toEqual([{ objectId: ada.id, type: "Person", key: "ada", version: 1 }])
        expect(seen.wrote).toMatchObject([{ objectType: "Note", key: "n", version: 1, change: "created" }])
        expect(seen.suggested).toMatchObject([{ status: "pending" }])

        const [{ taskId }] = seen.suggested
        yield* approve(story, yield* story.get(`/tasks/${taskId}`))
        const decided = yield* objects
        expect(decided.suggested).toMatchObject([{ taskId, status: "completed" }])
        expect(decided.wrote).toMatchObject([
          { entityId: ada.id, objectType: "Person", key: "ada", version: 2, change: "updated" },
          { objectType: "Note" }
        ])

        // Another run sees what is there now; its note is there already, so it wrote nothing.
        yield* change(story, ada, { age: 9 })
        const second = yield* story.post(`/agents/${agent.id}/trigger`)
        const other = yield* story.get(`/runs/${second.id}/objects`)
        expect(other.read).toMatchObject([{ objectId: ada.id, version: 3 }])
        expect(other.wrote).toEqual([])
        expect((yield* objects).read).toEqual(seen.read)
      })
    )

    it.effect("are none of a run that touched nothing, and not there for a run that is not", () =>
      Effect.gen(function* () {
        const story = yield* newStoryHere
        yield* make(story, "Person")
        const agent = yield* story.post("/agents", {
          ...watcher({ model: scripted([{ say: "Nothing." }]) }),
          triggerType: "manual",
          reactionConfig: null
        })
        const run = yield* story.post(`/agents/${agent.id}/trigger`)
        expect(yield* story.get(`/runs/${run.id}/objects`)).toEqual({ read: [], wrote: [], suggested: [] })
        const elsewhere = yield* newStoryHere
        for (const id of [run.id, crypto.randomUUID()])
          expectProblem(yield* elsewhere.ask("GET", `/runs/${id}/objects`), 404)
      })
    )
  })
})
