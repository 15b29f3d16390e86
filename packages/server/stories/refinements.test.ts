/**
 * A suggestion that waits is refined when its agent suggests the same again; there is no second one.
 */
import { describe, expect, layer } from "@effect/vitest"
import { Effect } from "effect"
import type { Json, Story } from "../testing/platform.ts"
import { problemOf } from "../testing/problem-words.ts"
import { newStoryHere, SharedServer } from "../testing/shared-server.ts"
import { callsOf, calling, endedRuns, make, watcher } from "../testing/story-words.ts"
import {
  approve,
  pendingOf,
  reject,
  suggesting,
  suggestingOnce,
  updating
} from "../testing/suggestion-words.ts"

const revisionsOf = (story: Story, task: Json) =>
  Effect.map(story.get(`/tasks/${task.id}/revisions`), (page): ReadonlyArray<Json> => page.items)

const dataOf = (task: Json) => task.payload.suggestedChanges.data

layer(SharedServer.layer, { excludeTestServices: true })((it) => {
  describe("Requirement: An open suggestion is refined instead of doubled", () => {
    it.effect("the same agent's second update of a property refines the first: one number, one task", () =>
      Effect.gen(function* () {
        const story = yield* newStoryHere
        const ada = yield* make(story, "Person", { age: 1, name: "Ada" })
        const agent = yield* suggesting(story)
        const first = yield* suggestingOnce(story, agent, {
          ...updating(ada, { age: 2, title: "Countess" }),
          confidence: 0.2,
          reasoning: "A guess"
        })
        const [before] = yield* pendingOf(story)
        expect(before).toMatchObject({ number: 1, revision: 1, refinedAt: null })

        const second = yield* suggestingOnce(story, agent, {
          ...updating(ada, { age: 36 }),
          confidence: 0.9,
          reasoning: "The register says so"
        })
        const tasks = yield* pendingOf(story)
        expect(tasks).toHaveLength(1)
        const [task] = tasks
        expect(task).toMatchObject({
          id: before.id,
          number: 1,
          createdAt: before.createdAt,
          revision: 2,
          refinedAt: expect.any(String),
          title: `Update Person ${ada.id}: age, title`,
          description: "The register says so",
          runId: second.run.id,
          payload: { agentRunId: second.run.id, confidence: 0.9, reasoning: "The register says so" }
        })
        expect(dataOf(task)).toEqual({ age: 36, title: "Countess" })
        expect(task.digest).not.toBe(before.digest)
        expect([first.result, second.result]).toEqual([
          { status: "suggested", taskId: task.id, taskNumber: 1 },
          { status: "suggested", taskId: task.id, taskNumber: 1, refined: true }
        ])
        expect(yield* revisionsOf(story, task)).toEqual([
          {
            revision: 1,
            payload: before.payload,
            digest: before.digest,
            runId: first.run.id,
            agentVersion: 1,
            baseVersion: 1,
            evidence: before.evidence,
            createdAt: before.createdAt
          }
        ])
      })
    )

    it.effect("whoever saw the older one and approves that is told that it was refined", () =>
      Effect.gen(function* () {
        const story = yield* newStoryHere
        const ada = yield* make(story, "Person", { age: 1 })
        const agent = yield* suggesting(story)
        yield* suggestingOnce(story, agent, updating(ada, { age: 2 }))
        const [seen] = yield* pendingOf(story)
        yield* suggestingOnce(story, agent, updating(ada, { age: 3 }))
        const problem = yield* problemOf(approve(story, seen, { digest: seen.digest }), 409)
        expect(problem.reason).toBe("digestMismatch")
        expect((yield* story.get(`/objects/${ada.id}`)).version).toBe(1)
        const [task] = yield* pendingOf(story)
        expect(task.revision).toBe(2)
        expect((yield* approve(story, task, { digest: task.digest })).status).toBe(200)
        expect((yield* story.get(`/objects/${ada.id}`)).properties).toEqual({ age: 3 })
        const history = yield* story.get(`/objects/${ada.id}/history`)
        expect(history.items[0]).toMatchObject({ runId: task.runId, taskId: task.id })
      })
    )

    it.effect("updates of different properties wait beside each other, until one concerns both", () =>
      Effect.gen(function* () {
        const story = yield* newStoryHere
        const ada = yield* make(story, "Person")
        const agent = yield* suggesting(story)
        yield* suggestingOnce(story, agent, updating(ada, { age: 2, born: 1815 }))
        yield* suggestingOnce(story, agent, updating(ada, { name: "Ada", title: "Countess" }))
        yield* suggestingOnce(story, agent, updating(ada, { city: "London" }))
        expect((yield* pendingOf(story)).map((task) => task.number)).toEqual([1, 2, 3])
        const { result } = yield* suggestingOnce(story, agent, updating(ada, { age: 3, name: "Ada L." }))
        expect(result).toMatchObject({ taskNumber: 1, refined: true })
        const tasks = yield* pendingOf(story)
        expect(tasks.map((task) => [task.number, dataOf(task)])).toEqual([
          [1, { age: 3, born: 1815, name: "Ada L.", title: "Countess" }],
          [3, { city: "London" }]
        ])
        const [taken] = (yield* story.get("/tasks?status=expired")).items
        expect(taken).toMatchObject({
          number: 2,
          resolvedBy: null,
          resolutionNote: expect.stringMatching(/\b1\b/)
        })
        const late = yield* problemOf(approve(story, taken), 409)
        expect([late.reason, late.detail]).toEqual(["expired", expect.stringMatching(/\b1\b/)])
      })
    )

    it.effect("nested objects of two patches are one patch", () =>
      Effect.gen(function* () {
        const story = yield* newStoryHere
        const ada = yield* make(story, "Person", { home: { city: "London", zip: 1, street: "A" } })
        const agent = yield* suggesting(story)
        yield* suggestingOnce(story, agent, updating(ada, { home: { city: "Paris", zip: null } }))
        yield* suggestingOnce(story, agent, updating(ada, { home: { city: "Rome" } }))
        const [task] = yield* pendingOf(story)
        expect(dataOf(task)).toEqual({ home: { city: "Rome", zip: null } })
        yield* approve(story, task)
        expect((yield* story.get(`/objects/${ada.id}`)).properties).toEqual({
          home: { city: "Rome", street: "A" }
        })
      })
    )

    it.effect("what moved since under the older words is let go of, and nobody's edit is overwritten", () =>
      Effect.gen(function* () {
        const story = yield* newStoryHere
        const ada = yield* make(story, "Person", { age: 1, name: "Ada" })
        const agent = yield* suggesting(story)
        yield* suggestingOnce(story, agent, updating(ada, { age: 2, name: "Ada L.", title: "Countess" }))
        yield* story.patch(`/objects/${ada.id}`, { properties: { name: "Augusta" } })
        yield* suggestingOnce(story, agent, updating(ada, { age: 36 }))
        const [task] = yield* pendingOf(story)
        expect([task.baseVersion, dataOf(task)]).toEqual([2, { age: 36, title: "Countess" }])
        expect((yield* approve(story, task, { digest: task.digest })).status).toBe(200)
        expect((yield* story.get(`/objects/${ada.id}`)).properties).toEqual({
          age: 36,
          name: "Augusta",
          title: "Countess"
        })
      })
    )

    it.effect("each kind of change has its own sameness", () =>
      Effect.gen(function* () {
        const story = yield* newStoryHere
        const [ada, grace] = [yield* make(story, "Person"), yield* make(story, "Person")]
        const knows = yield* story.post("/relationships", {
          type: "KNOWS",
          fromId: ada.id,
          toId: grace.id,
          properties: { since: 1 }
        })
        const agent = yield* suggesting(story)
        const once = (tool: string, args: Record<string, unknown>) =>
          Effect.map(suggestingOnce(story, agent, { tool, arguments: args }), ({ result }) => [
            result.taskNumber,
            result.refined ?? false
          ])
        const note = (key: string | null, text: string) => ({ type: "Note", key, properties: { text } })
        const related = (type: string, properties = {}) => ({
          type,
          fromId: ada.id,
          toId: grace.id,
          properties
        })
        expect([
          yield* once("create_object", { ...note("n", "a"), properties: { text: "a", more: 1 } }),
          yield* once("create_object", note("n", "b")),
          yield* once("create_object", note("other", "b")),
          yield* once("create_object", note(null, "a")),
          yield* once("create_object", note(null, "a")),
          yield* once("create_object", note(null, "b")),
          yield* once("delete_object", { objectId: grace.id }),
          yield* once("delete_object", { objectId: grace.id }),
          yield* once("create_relationship", related("ADMIRES")),
          yield* once("create_relationship", related("ADMIRES", { much: true })),
          yield* once("create_relationship", related("TEACHES")),
          yield* once("update_relationship", { relationshipId: knows.id, properties: { since: 2 } }),
          yield* once("update_relationship", { relationshipId: knows.id, properties: { since: 3 } }),
          yield* once("delete_relationship", { relationshipId: knows.id }),
          yield* once("delete_relationship", { relationshipId: knows.id })
        ]).toEqual([
          [1, false],
          [1, true],
          [2, false],
          [3, false],
          [3, true],
          [4, false],
          [5, false],
          [5, true],
          [6, false],
          [6, true],
          [7, false],
          [8, false],
          [8, true],
          [9, false],
          [9, true]
        ])
        const tasks = yield* pendingOf(story)
        expect(tasks.map((task) => task.revision)).toEqual([2, 1, 2, 1, 2, 2, 1, 2, 2])
        // A creation says the whole of what it creates: nothing of what was said before is left in it.
        expect(dataOf(tasks[0])).toEqual({ text: "b" })
        expect(dataOf(tasks[5])).toEqual({ much: true })
        expect(tasks[7].payload.suggestedChanges).toMatchObject({ data: { since: 3 } })
      })
    )

    it.effect("the same creation without a key is another one when another object woke the agent", () =>
      Effect.gen(function* () {
        const story = yield* newStoryHere
        const agent = yield* story.post(
          "/agents",
          watcher({
            executionMode: "suggest",
            reactionConfig: { objectTypes: ["Person"], events: ["created", "updated"] },
            model: calling({ tool: "create_object", arguments: { type: "Label", properties: {} } })
          })
        )
        const ada = yield* make(story, "Person")
        yield* make(story, "Person")
        yield* endedRuns(story, agent, 2)
        yield* story.patch(`/objects/${ada.id}`, { properties: { age: 2 } })
        yield* endedRuns(story, agent, 3)
        const tasks = yield* pendingOf(story)
        expect(tasks.map((task) => task.revision).toSorted()).toEqual([1, 2])
      })
    )

    it.effect("another agent's suggestion, and one that is decided, are left as they are", () =>
      Effect.gen(function* () {
        const story = yield* newStoryHere
        const ada = yield* make(story, "Person", { age: 1 })
        const [one, other] = [yield* suggesting(story), yield* suggesting(story, { name: "other" })]
        yield* suggestingOnce(story, one, updating(ada, { age: 2 }))
        yield* suggestingOnce(story, other, updating(ada, { age: 3 }))
        const tasks = yield* pendingOf(story)
        expect(tasks.map((task) => [task.number, task.agentName])).toEqual([
          [1, one.name],
          [2, "other"]
        ])
        yield* reject(story, tasks[0])
        const { result } = yield* suggestingOnce(story, one, updating(ada, { age: 4 }))
        expect(result).toEqual({ status: "suggested", taskId: expect.any(String), taskNumber: 3 })
        expect(yield* story.get(`/tasks/${tasks[0].id}`)).toMatchObject({ status: "rejected", revision: 1 })
        expect((yield* pendingOf(story)).map((task) => task.number)).toEqual([2, 3])
      })
    )

    it.effect("a run that suggests the same twice has one task, and a record of both calls", () =>
      Effect.gen(function* () {
        const story = yield* newStoryHere
        const ada = yield* make(story, "Person", { age: 1 })
        const agent = yield* suggesting(story)
        const run = yield* story.post(`/agents/${agent.id}/trigger`, {
          input: { calls: [updating(ada, { age: 2 }), updating(ada, { age: 3 })] }
        })
        yield* endedRuns(story, agent, 1)
        const calls = yield* callsOf(story, run)
        expect(calls.map(({ decision, result }) => [decision, result.taskNumber])).toEqual([
          ["suggest", 1],
          ["suggest", 1]
        ])
        expect(yield* pendingOf(story)).toMatchObject([{ number: 1, revision: 2 }])
      })
    )
  })

  describe("What a suggestion said before can be read", () => {
    it.effect("newest first, page by page", () =>
      Effect.gen(function* () {
        const story = yield* newStoryHere
        const ada = yield* make(story, "Person", { age: 0 })
        const agent = yield* suggesting(story)
        for (const age of [1, 2, 3, 4]) yield* suggestingOnce(story, agent, updating(ada, { age }))
        const [task] = yield* pendingOf(story)
        const first = yield* story.get(`/tasks/${task.id}/revisions?limit=2`)
        expect(first.items.map((said: Json) => [said.revision, dataOf(said)])).toEqual([
          [3, { age: 3 }],
          [2, { age: 2 }]
        ])
        const rest = yield* story.get(`/tasks/${task.id}/revisions?limit=2&cursor=${first.nextCursor}`)
        expect(rest.items.map((said: Json) => said.revision)).toEqual([1])
        expect(rest.nextCursor).toBe(null)
      })
    )

    it.effect("nothing of another project, and no cursor that no page gave", () =>
      Effect.gen(function* () {
        const [story, other] = [yield* newStoryHere, yield* newStoryHere]
        const ada = yield* make(story, "Person", { age: 0 })
        const agent = yield* suggesting(story)
        yield* suggestingOnce(story, agent, updating(ada, { age: 1 }))
        const [task] = yield* pendingOf(story)
        expect(yield* revisionsOf(story, task)).toEqual([])
        yield* problemOf(other.ask("GET", `/tasks/${task.id}/revisions`), 404)
        yield* problemOf(story.ask("GET", `/tasks/${ada.id}/revisions`), 404)
        yield* problemOf(story.ask("GET", `/tasks/${task.id}/revisions?cursor=x`), 422)
      })
    )
  })
})
