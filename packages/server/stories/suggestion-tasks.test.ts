/**
 * A suggestion as a task: what it carries and where it is found.
 */
import { describe, expect, layer } from "@effect/vitest"
import { Effect } from "effect"
import type { Json } from "../testing/platform.ts"
import { newStoryHere, SharedServer } from "../testing/shared-server.ts"
import { callsOf, make } from "../testing/story-words.ts"
import { approve, reject, suggested, updating } from "../testing/suggestion-words.ts"

layer(SharedServer.layer)((it) => {
  describe("Decision: suggestion handling", () => {
    it.effect(
      "S001-R35, R36, R37, R38, R41 each kind of change has its task type and its suggestedChanges",
      () =>
        Effect.gen(function* () {
          const story = yield* newStoryHere
          const [ada, grace, acme] = [
            yield* make(story, "Person"),
            yield* make(story, "Person"),
            yield* make(story, "Company")
          ]
          const { tasks } = yield* suggested(
            story,
            { tool: "create_object", arguments: { type: "Note", key: "n1", properties: { text: "Hello" } } },
            updating(ada, { name: "Ada", old: null }),
            { tool: "create_relationship", arguments: { type: "KNOWS", fromId: ada.id, toId: grace.id } },
            { tool: "delete_object", arguments: { objectId: acme.id } }
          )
          expect(tasks.map((task) => [task.type, task.payload.suggestedChanges])).toEqual([
            [
              "object_create_suggestion",
              { type: "create", objectType: "Note", key: "n1", data: { text: "Hello" } }
            ],
            [
              "object_update_suggestion",
              { type: "update", objectId: ada.id, data: { name: "Ada", old: null } }
            ],
            [
              "relationship_create_suggestion",
              {
                type: "createRelationship",
                relationship: { fromId: ada.id, toId: grace.id, type: "KNOWS" },
                data: {}
              }
            ],
            ["object_delete_suggestion", { type: "delete", objectId: acme.id }]
          ])
          for (const task of tasks)
            expect((yield* story.get(`/tasks?type=${task.type}`)).items).toEqual([task])
        })
    )

    it.effect(
      "S001-R39, R40 the payload has agent, run and reasoning, and confidence where it was given",
      () =>
        Effect.gen(function* () {
          const story = yield* newStoryHere
          const [ada, grace] = [yield* make(story, "Person"), yield* make(story, "Person")]
          const full = updating(ada, { seen: true })
          const second = updating(grace, { seen: true })
          const { agent, run, tasks } = yield* suggested(
            story,
            { ...full, arguments: { ...full.arguments, confidence: 0.25, reasoning: "Ada was first" } },
            { ...second, arguments: { ...second.arguments, reasoning: "Grace was second" } }
          )
          const who = { agentId: agent.id, agentRunId: run.id }
          expect(tasks.map((task) => task.payload)).toEqual([
            {
              ...who,
              confidence: 0.25,
              reasoning: "Ada was first",
              suggestedChanges: { type: "update", objectId: ada.id, data: { seen: true } }
            },
            {
              ...who,
              reasoning: "Grace was second",
              suggestedChanges: { type: "update", objectId: grace.id, data: { seen: true } }
            }
          ])
          expect(tasks.map((task) => task.description)).toEqual(["Ada was first", "Grace was second"])
        })
    )

    it.effect("S001-R34 suggestions are tasks like all others: one list, one status, one way to decide", () =>
      Effect.gen(function* () {
        const story = yield* newStoryHere
        const people = yield* Effect.forEach([1, 2, 3], () => make(story, "Person"))
        const { run, tasks } = yield* suggested(
          story,
          ...people.map((person) => updating(person, { seen: true }))
        )
        expect(tasks.map((task) => [task.number, task.status])).toEqual([
          [1, "pending"],
          [2, "pending"],
          [3, "pending"]
        ])
        yield* approve(story, tasks[0])
        yield* reject(story, tasks[1])
        const listed = Effect.fnUntraced(function* (query: string) {
          const page = yield* story.get(`/tasks${query}`)
          return page.items.map((task: Json) => [task.number, task.status])
        })
        expect(yield* listed("")).toEqual([
          [3, "pending"],
          [2, "rejected"],
          [1, "completed"]
        ])
        expect(yield* listed("?status=pending")).toEqual([[3, "pending"]])
        expect(yield* listed("?status=completed")).toEqual([[1, "completed"]])
        expect(yield* listed("?status=rejected")).toEqual([[2, "rejected"]])
        // The audit leads from the run to its tasks.
        const calls = yield* callsOf(story, run)
        expect(calls.map((call) => call.result.taskId)).toEqual(tasks.map((task) => task.id))
      })
    )
  })
})
