/**
 * What a run read, wrote and suggests is told of it, and nothing of any other.
 */
import { describe, expect, layer } from "@effect/vitest"
import { Effect } from "effect"
import { type Json, scripted } from "../testing/platform.ts"
import { expectProblem } from "../testing/problem-words.ts"
import { newStoryHere, SharedServer } from "../testing/shared-server.ts"
import { change, endedRuns, make, watcher } from "../testing/story-words.ts"
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
        const [{ entityId: noteId }] = seen.wrote
        expect(seen.read).toEqual([
          { objectId: noteId, type: "Note", key: "n", version: 1, isOwn: true },
          { objectId: ada.id, type: "Person", key: "ada", version: 1, isOwn: false }
        ])
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
        expect(other.read).toMatchObject([{ objectId: ada.id, version: 3, isOwn: false }])
        expect(other).toMatchObject({ wrote: [], changedGraph: false })
        expect((yield* objects).read).toEqual(seen.read)
      })
    )

    it.effect(
      "are told by one source: a suggestion's evidence is what its run has read, what woke it included",
      () =>
        Effect.gen(function* () {
          const story = yield* newStoryHere
          const home = yield* story.post("/objects", { type: "Place", key: "home", properties: {} })
          const agent = yield* story.post(
            "/agents",
            watcher({
              executionMode: "suggest",
              model: scripted([
                {
                  when: "step == 0",
                  calls: [
                    { tool: "get_object", arguments: { objectId: home.id } },
                    {
                      tool: "update_object",
                      arguments: { objectId: "{{ input.object.id }}", properties: { at: "home" } }
                    }
                  ]
                },
                { say: "Done." }
              ])
            })
          )
          const ada = yield* make(story, "Person")
          const [run] = yield* endedRuns(story, agent, 1)
          const seen = yield* story.get(`/runs/${run.id}/objects`)
          const task = yield* story.get(`/tasks/${seen.suggested[0].taskId}`)
          expect(seen.read).toMatchObject([
            { objectId: home.id, version: 1 },
            { objectId: ada.id, version: 1 }
          ])
          expect(seen.read.map(({ objectId, type, version }: Json) => ({ objectId, type, version }))).toEqual(
            task.evidence
          )
          // Nothing is there to undo before somebody has approved it.
          expect(seen.changedGraph).toBe(false)
          yield* approve(story, task)
          expect(yield* story.get(`/runs/${run.id}/objects`)).toMatchObject({ changedGraph: true })
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
        expect(yield* story.get(`/runs/${run.id}/objects`)).toEqual({
          read: [],
          wrote: [],
          suggested: [],
          changedGraph: false
        })
        const elsewhere = yield* newStoryHere
        for (const id of [run.id, crypto.randomUUID()])
          expectProblem(yield* elsewhere.ask("GET", `/runs/${id}/objects`), 404)
      })
    )
  })
})
