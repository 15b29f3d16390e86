/**
 * Whether an agent's change is done or put before a person.
 */
import { describe, expect, layer } from "@effect/vitest"
import { Effect } from "effect"
import { type Json, scripted } from "../testing/platform.ts"
import { shownTo } from "../testing/mcp-runs.ts"
import { newStoryHere, SharedServer } from "../testing/shared-server.ts"
import { callsOf, calling, endedRuns, feedOf, make, suggestionsOf, watcher } from "../testing/story-words.ts"

/** Marks what woke the agent as seen. */
const marking = (intent: Record<string, unknown> = {}) =>
  calling({
    tool: "update_object",
    arguments: { objectId: "{{ input.object.id }}", properties: { seen: true }, ...intent }
  })

layer(SharedServer.layer)((it) => {
  describe("Decision: three execution modes", () => {
    it.effect("S001-R26 suggest puts before people who wants what and why, and keeps who decided", () =>
      Effect.gen(function* () {
        const story = yield* newStoryHere
        const agent = yield* story.post(
          "/agents",
          watcher({ executionMode: "suggest", model: marking({ reasoning: "Nobody has looked at it" }) })
        )
        const person = yield* make(story, "Person")
        const [run] = yield* endedRuns(story, agent, 1)
        const [task] = yield* suggestionsOf(story, 1)
        expect(yield* story.get(`/objects/${person.id}`)).toEqual(person)
        expect(yield* callsOf(story, run)).toMatchObject([
          { agentId: agent.id, tool: "update_object", decision: "suggest", result: { taskId: task.id } }
        ])
        const decided = yield* story.post(`/tasks/${task.id}/approve`, { digest: task.digest })
        expect(decided).toMatchObject({
          status: "completed",
          resolvedBy: "admin",
          resolvedAt: expect.any(String)
        })
        const events = yield* feedOf(story, 2)
        expect(events.at(-1)).toMatchObject({
          entityId: person.id,
          actorId: agent.id,
          approvedBy: "admin",
          taskId: task.id,
          runId: run.id
        })
      })
    )

    it.effect(
      "S001-R27 execute changes the graph in the call itself, as the agent and with no approver",
      () =>
        Effect.gen(function* () {
          const story = yield* newStoryHere
          const agent = yield* story.post("/agents", watcher({ executionMode: "execute", model: marking() }))
          const person = yield* make(story, "Person")
          const [run] = yield* endedRuns(story, agent, 1)
          const [call] = yield* callsOf(story, run)
          expect(call).toMatchObject({ decision: "execute", result: { status: "applied" } })
          const events = yield* feedOf(story, 2)
          expect(events.at(-1)).toMatchObject({
            entityId: person.id,
            version: 2,
            actorId: agent.id,
            approvedBy: null,
            taskId: null,
            runId: run.id,
            toolCallId: call.id
          })
        })
    )
  })

  describe("Requirement: Execution Modes", () => {
    it.effect(
      "S000-R21, R22, R23 suggest makes a task with the changes and reasoning, and changes nothing",
      () =>
        Effect.gen(function* () {
          const story = yield* newStoryHere
          const agent = yield* story.post(
            "/agents",
            watcher({
              executionMode: "suggest",
              model: marking({ reasoning: "Nobody has looked at it", confidence: 0.4 })
            })
          )
          const person = yield* make(story, "Person", { name: "Ada" })
          const [task] = yield* suggestionsOf(story, 1)
          const [run] = yield* endedRuns(story, agent, 1)
          expect(task).toMatchObject({
            type: "object_update_suggestion",
            status: "pending",
            agentId: agent.id,
            runId: run.id,
            description: "Nobody has looked at it",
            baseVersion: 1,
            target: { id: person.id, version: 1 },
            payload: {
              agentId: agent.id,
              agentRunId: run.id,
              confidence: 0.4,
              reasoning: "Nobody has looked at it",
              suggestedChanges: { type: "update", objectId: person.id, data: { seen: true } }
            }
          })
          expect(yield* callsOf(story, run)).toMatchObject([
            {
              tool: "update_object",
              status: "completed",
              decision: "suggest",
              result: { status: "suggested", taskId: task.id }
            }
          ])
          expect(yield* story.get(`/objects/${person.id}`)).toEqual(person)
          expect(yield* feedOf(story, 0)).toHaveLength(1)
        })
    )

    it.effect(
      "S000-R23 the words beside the call are the reasoning where the call has none, and without either it is refused",
      () =>
        Effect.gen(function* () {
          const story = yield* newStoryHere
          const note = (key: string, intent: Record<string, unknown> = {}) => ({
            tool: "create_object",
            arguments: { type: "Note", key, properties: {}, ...intent }
          })
          const agent = yield* story.post(
            "/agents",
            watcher({
              executionMode: "suggest",
              model: scripted([
                {
                  when: "step == 0",
                  say: "  Ada has no note yet. ",
                  calls: [note("a"), note("b", { reasoning: "b is missing" }), note("c", { reasoning: "  " })]
                },
                { when: "step == 1", say: "w".repeat(10_000), calls: [note("d")] },
                { when: "step == 2", calls: [note("e", { reasoning: "  " })] },
                { say: "Done." }
              ])
            })
          )
          yield* make(story, "Person", { name: "Ada" })
          const [run] = yield* endedRuns(story, agent, 1)
          const tasks = yield* suggestionsOf(story, 4)
          const told = tasks.map(({ description, payload }) => [
            payload.suggestedChanges.key,
            payload.reasoning,
            description
          ])
          expect(told.filter(([key]) => key !== "d")).toEqual([
            ["a", "Ada has no note yet.", "Ada has no note yet."],
            ["b", "b is missing", "b is missing"],
            ["c", "Ada has no note yet.", "Ada has no note yet."]
          ])
          expect(tasks[3].payload.reasoning).toMatch(/^w{1000,}/)
          expect(tasks[3].payload.reasoning.length).toBeLessThan(4_010)
          expect(yield* callsOf(story, run)).toMatchObject([
            ...tasks.map(() => ({ decision: "suggest" })),
            { status: "failed", decision: null, result: { pointer: "/reasoning" } }
          ])
          // What the model sent is on record as it was sent.
          expect((yield* callsOf(story, run))[0].arguments).toEqual(note("a").arguments)
        })
    )

    it.effect.each(["suggest", "hybrid", "execute"] as const)(
      "S000-R23 an agent in mode %s is offered the tools that change the graph with its reasoning required, or not",
      (executionMode) =>
        Effect.gen(function* () {
          const story = yield* newStoryHere
          const agent = yield* story.post(
            "/agents",
            watcher({ executionMode, model: calling({ tool: "search_objects", arguments: {} }) })
          )
          yield* make(story, "Person")
          const [run] = yield* endedRuns(story, agent, 1)
          const tools = yield* shownTo(story, run)
          const requiring = tools
            .filter(({ inputSchema }) => (inputSchema.required ?? []).includes("reasoning"))
            .map(({ name }) => name)
          const changing = tools
            .map(({ name }) => name)
            .filter((name: string) => /^(create|update|delete)_(object|relationship)$/.test(name))
          expect(changing).toHaveLength(6)
          expect(requiring.toSorted()).toEqual(executionMode === "execute" ? [] : changing.toSorted())
        })
    )

    it.effect("S000-R21, S001-K04 an agent in suggest mode changes nothing, whatever it says of itself", () =>
      Effect.gen(function* () {
        const story = yield* newStoryHere
        const agent = yield* story.post(
          "/agents",
          watcher({ executionMode: "suggest", model: marking({ suggest: false, confidence: 1 }) })
        )
        const person = yield* make(story, "Person")
        yield* endedRuns(story, agent, 1)
        expect(yield* suggestionsOf(story, 1)).toHaveLength(1)
        expect(yield* story.get(`/objects/${person.id}`)).toEqual(person)
      })
    )

    it.effect("S000-R24 execute applies the change to the graph directly, with no task", () =>
      Effect.gen(function* () {
        const story = yield* newStoryHere
        const agent = yield* story.post("/agents", watcher({ executionMode: "execute", model: marking() }))
        const person = yield* make(story, "Person", { name: "Ada" })
        const [run] = yield* endedRuns(story, agent, 1)
        expect(yield* callsOf(story, run)).toMatchObject([{ status: "completed", decision: "execute" }])
        expect(yield* story.get(`/objects/${person.id}`)).toMatchObject({
          version: 2,
          properties: { name: "Ada", seen: true }
        })
        expect((yield* story.get("/tasks")).items).toEqual([])
      })
    )

    it.effect(
      "S001-R05 one event is executed upon by one agent and answered with a suggestion by another",
      () =>
        Effect.gen(function* () {
          const story = yield* newStoryHere
          const noting = (text: string) =>
            calling({ tool: "create_object", arguments: { type: "Note", properties: { text } } })
          const acting = yield* story.post(
            "/agents",
            watcher({ name: "acting", executionMode: "execute", model: noting("done") })
          )
          const asking = yield* story.post(
            "/agents",
            watcher({ name: "asking", executionMode: "suggest", model: noting("suggested") })
          )
          yield* make(story, "Person")
          yield* endedRuns(story, acting, 1)
          yield* endedRuns(story, asking, 1)
          const notes = yield* story.get("/objects?type=Note")
          expect(notes.items).toMatchObject([{ properties: { text: "done" }, actorId: acting.id }])
          expect(yield* suggestionsOf(story, 1)).toMatchObject([
            { agentId: asking.id, payload: { suggestedChanges: { data: { text: "suggested" } } } }
          ])
        })
    )

    it.effect(
      "S000-R25, S001-R28 hybrid does what it is sure of and asks for the rest, by confidence and by kind of change",
      () =>
        Effect.gen(function* () {
          const story = yield* newStoryHere
          const [ada, bob, old] = [
            yield* make(story, "Thing", { name: "Ada" }),
            yield* make(story, "Thing", { name: "Bob" }),
            yield* make(story, "Thing", { name: "Old" })
          ]
          const renaming = (thing: Json, confidence?: number) => ({
            tool: "update_object",
            arguments: { objectId: thing.id, properties: { name: "New" }, confidence: confidence ?? null }
          })
          const deleting = { tool: "delete_object", arguments: { objectId: old.id, confidence: 1 } }
          const model = calling(renaming(ada, 0.8), renaming(bob, 0.79), deleting, {
            tool: "create_object",
            arguments: { type: "Thing", properties: { name: "Unsure" } }
          })
          const agent = yield* story.post("/agents", watcher({ executionMode: "hybrid", model }))
          yield* make(story, "Person")
          const [run] = yield* endedRuns(story, agent, 1)
          expect((yield* callsOf(story, run)).map(({ decision }) => decision)).toEqual([
            "execute",
            "suggest",
            "suggest",
            "suggest"
          ])
          expect(yield* story.get(`/objects/${ada.id}`)).toMatchObject({
            version: 2,
            actorId: agent.id,
            properties: { name: "New" }
          })
          expect([yield* story.get(`/objects/${bob.id}`), yield* story.get(`/objects/${old.id}`)]).toEqual([
            bob,
            old
          ])
          expect(
            (yield* suggestionsOf(story, 3)).map(({ type, payload }) => [type, payload.confidence])
          ).toEqual([
            ["object_update_suggestion", 0.79],
            ["object_delete_suggestion", 1],
            ["object_create_suggestion", undefined]
          ])
        })
    )

    it.effect(
      "S000-R25 the agent's own policy says how sure is sure enough, and what is asked for always",
      () =>
        Effect.gen(function* () {
          const story = yield* newStoryHere
          const thing = yield* make(story, "Thing")
          const hybrid = (name: string, hybridPolicy: unknown, confidence: number) =>
            Effect.gen(function* () {
              const model = calling(
                { tool: "create_object", arguments: { type: "Thing", properties: {}, confidence } },
                { tool: "delete_object", arguments: { objectId: thing.id, confidence } }
              )
              const agent = yield* story.post(
                "/agents",
                watcher({
                  name,
                  executionMode: "hybrid",
                  hybridPolicy,
                  model,
                  reactionConfig: { objectTypes: [name], events: ["created"] }
                })
              )
              yield* make(story, name)
              const [run] = yield* endedRuns(story, agent, 1)
              return (yield* callsOf(story, run)).map(({ decision }) => decision)
            })
          expect(yield* hybrid("Strict", { confidenceThreshold: 0.95 }, 0.9)).toEqual(["suggest", "suggest"])
          expect(yield* hybrid("Careful", { alwaysSuggest: ["create", "delete"] }, 1)).toEqual([
            "suggest",
            "suggest"
          ])
          expect(yield* hybrid("Bold", { alwaysSuggest: [], confidenceThreshold: 0.2 }, 0.2)).toEqual([
            "execute",
            "execute"
          ])
        })
    )

    it.effect("S000-R24 an agent in execute mode may still ask a person", () =>
      Effect.gen(function* () {
        const story = yield* newStoryHere
        const agent = yield* story.post(
          "/agents",
          watcher({ executionMode: "execute", model: marking({ suggest: true }) })
        )
        const person = yield* make(story, "Person")
        const [run] = yield* endedRuns(story, agent, 1)
        expect(yield* callsOf(story, run)).toMatchObject([{ decision: "suggest" }])
        expect(yield* suggestionsOf(story, 1)).toHaveLength(1)
        expect(yield* story.get(`/objects/${person.id}`)).toEqual(person)
      })
    )
  })
})
