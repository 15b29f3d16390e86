/**
 * Runs as tasks of MCP: looked at, answered and stopped over the wire, by whoever may.
 */
import { describe, expect, layer } from "@effect/vitest"
import { Effect } from "effect"
import {
  addressOf,
  answering,
  askable,
  filled,
  resultOf,
  rpc,
  taskOf,
  taskWhen
} from "../testing/mcp-extension-words.ts"
import { connect } from "../testing/mcp-clients.ts"
import { addEvent } from "../testing/context-words.ts"
import { newConversation, talker } from "../testing/conversation-words.ts"
import { eventually, type Json, scripted, type Story } from "../testing/platform.ts"
import { asked, asking, questionsOf } from "../testing/question-words.ts"
import { newStoryHere, SharedServer } from "../testing/shared-server.ts"
import { watcher } from "../testing/story-words.ts"
import { suggested } from "../testing/suggestion-words.ts"
import { asUser } from "../testing/token-words.ts"
import { naming } from "../testing/naming.ts"

const manual = (overrides: Record<string, unknown> = {}) =>
  watcher({ name: "worker", triggerType: "manual", reactionConfig: null, ...overrides })

/** A run of a new agent, begun and not waited for. */
const begun = Effect.fnUntraced(function* (story: Story, overrides: Record<string, unknown> = {}) {
  const agent = yield* story.post("/agents", manual(overrides))
  return yield* story.post(`/agents/${agent.id}/trigger?wait=false`)
})

const askingRules = [
  { when: "step == 0", calls: [{ tool: "ask_user", arguments: { question: "Which secret?" } }] },
  { say: "Thanks." }
]

const withoutForms = { extensions: askable.extensions }
const keyOf = (task: Json): string => Object.keys(task.inputRequests)[0] ?? ""

layer(SharedServer.layer, { excludeTestServices: true })((it) => {
  describe("A run is a task of MCP", () => {
    it.effect(
      "the extension is told among the extensions, and in no slot of the revision before; a client of that is told of its own tasks alone",
      () =>
        Effect.gen(function* () {
          const story = yield* newStoryHere
          const { capabilities } = yield* resultOf(story, "server/discover")
          expect(capabilities.extensions).toMatchObject({ "io.modelcontextprotocol/tasks": {} })
          expect(capabilities).not.toHaveProperty("tasks")
          // The revision before has tasks of its own, and cannot say that it knows the extension.
          const before = (yield* connect(story, addressOf(story), "2025-11-25")).getServerCapabilities()
          expect(before).toMatchObject({ tasks: { cancel: {}, requests: { tools: { call: {} } } } })
          expect(before?.extensions).toEqual({ "io.modelcontextprotocol/events": {} })
        })
    )

    it.effect("a client that does not say with its request that it knows tasks is told what it lacks", () =>
      Effect.gen(function* () {
        const story = yield* newStoryHere
        const run = yield* begun(story)
        for (const [method, more] of [
          ["tasks/get", {}],
          ["tasks/cancel", {}],
          ["tasks/update", { inputResponses: {} }]
        ] as const) {
          const { error } = yield* rpc(story, method, { taskId: run.id, ...more }, {})
          expect(error).toMatchObject({
            code: -32_021,
            data: { requiredCapabilities: { extensions: { "io.modelcontextprotocol/tasks": {} } } }
          })
        }
      })
    )

    it.effect("a run that ends is a completed task with its result, and one that failed says so in it", () =>
      Effect.gen(function* () {
        const story = yield* newStoryHere
        const run = yield* begun(story, { model: scripted([{ say: "All is well." }]) })
        const task = yield* taskWhen(story, run, "completed")
        expect(task).toMatchObject({
          resultType: "complete",
          taskId: run.id,
          createdAt: run.createdAt,
          ttlMs: null,
          pollIntervalMs: expect.any(Number),
          result: {
            isError: false,
            content: [{ type: "text", text: "All is well." }],
            structuredContent: { run: { id: run.id, status: "completed" } }
          }
        })
        expect(task).not.toHaveProperty("inputRequests")
        const failing = yield* begun(story, {
          name: "failing",
          model: { provider: "openai", name: "gpt-4o" }
        })
        const failed = yield* taskWhen(story, failing, "completed")
        expect(failed.result).toMatchObject({
          isError: true,
          content: [{ text: expect.stringMatching(/\S/) }]
        })
        expect(failed).not.toHaveProperty("error")
      })
    )

    it.effect(
      "a client that knows tasks gets the handle of the run that it triggers, and any other client its result",
      () =>
        Effect.gen(function* () {
          const story = yield* newStoryHere
          const agent = yield* story.post("/agents", manual({ model: scripted([{ say: "All is well." }]) }))
          const call = { name: "trigger_agent", arguments: { agent: agent.name } }
          const handle = yield* resultOf(story, "tools/call", call)
          expect(handle).toMatchObject({
            resultType: "task",
            taskId: expect.any(String),
            status: "working",
            ttlMs: null
          })
          for (const field of ["result", "error", "inputRequests", "requestState", "task"])
            expect(handle).not.toHaveProperty(field)
          const done = yield* taskWhen(story, { id: handle.taskId }, "completed")
          expect(done.result.content[0].text).toBe("All is well.")
          const whole = yield* resultOf(story, "tools/call", call, {})
          expect(whole).toMatchObject({ resultType: "complete", structuredContent: { status: "completed" } })
          const refused = yield* resultOf(story, "tools/call", { ...call, arguments: { agent: "nobody" } })
          expect(refused).toMatchObject({ resultType: "complete", isError: true })
        })
    )

    it.effect(
      "S003-R46 the task of somebody's own run is not there for others, and its question is theirs to answer",
      () =>
        Effect.gen(function* () {
          const story = yield* newStoryHere
          const ann = yield* asUser(story, "reviewer", null, "ann")
          const ben = yield* asUser(story, "reviewer", null, "ben")
          const agent = yield* talker(story, askingRules, { tools: ["run.ask_user"] })
          const talks = yield* newConversation(story, agent, "Asking", "ann")
          yield* addEvent(ann, talks.contextName, "Ask me")
          const { items } = yield* eventually(
            ann.get("/runs"),
            ({ items: [run] }) => run?.status === "paused"
          )
          const [run] = items
          const task = yield* taskWhen(ann, run, "input_required")
          const missing = { id: crypto.randomUUID() }
          const answers = { [keyOf(task)]: filled({ answer: "None" }) }
          for (const [method, more] of [
            ["tasks/get", {}],
            ["tasks/cancel", {}],
            ["tasks/update", { inputResponses: answers }]
          ] as const) {
            const foreign = yield* rpc(ben, method, { taskId: run.id, ...more })
            expect(foreign.error).toEqual((yield* rpc(ben, method, { taskId: missing.id, ...more })).error)
            expect(foreign.error).toBeDefined()
          }
          expect(yield* ann.get(`/runs/${run.id}`)).toMatchObject({ status: "paused" })
          yield* answering(ann, run, answers)
          expect((yield* taskWhen(ann, run, "completed")).result.content[0].text).toBe("Thanks.")
        })
    )

    it.effect("a run at work is working, and stops for good when its task is cancelled, however often", () =>
      Effect.gen(function* () {
        const story = yield* newStoryHere
        const run = yield* begun(story, { model: scripted([{ say: "Late.", latencyMs: 600_000 }]) })
        const working = yield* taskOf(story, run)
        expect(working.status).toBe("working")
        expect(working).not.toHaveProperty("result")
        for (const _time of [1, 2])
          expect(yield* resultOf(story, "tasks/cancel", { taskId: run.id })).toMatchObject({
            resultType: "complete"
          })
        expect(yield* taskOf(story, run)).toMatchObject({ status: "cancelled" })
        expect(yield* story.get(`/runs/${run.id}`)).toMatchObject({
          status: "cancelled",
          cancelledBy: (yield* story.send("GET", "/api/me")).body.userId
        })
      })
    )

    it.effect("a question of the run is a form; its answer lets the run go on, and is heard once", () =>
      Effect.gen(function* () {
        const story = yield* newStoryHere
        const { run } = yield* asked(story, asking("Which colour?", ["red", "blue"]))
        const task = yield* taskOf(story, run)
        expect(task).toMatchObject({
          status: "input_required",
          inputRequests: {
            [keyOf(task)]: {
              method: "elicitation/create",
              params: {
                mode: "form",
                message: "Which colour?",
                requestedSchema: {
                  type: "object",
                  properties: { answer: { type: "string", enum: ["red", "blue"] } },
                  required: ["answer"]
                }
              }
            }
          }
        })
        // A form cannot be shown: somebody else will answer.
        expect(yield* taskOf(story, run, withoutForms)).toMatchObject({ status: "working" })
        const odd = yield* answering(story, run, { [keyOf(task)]: filled({ answer: "green" }) })
        expect(odd.error).toMatchObject({ code: -32_602, message: expect.stringContaining('"red"') })
        const empty = yield* answering(story, run, { [keyOf(task)]: filled({}) })
        expect(empty.error).toMatchObject({ code: -32_602, message: expect.stringMatching(/\S/) })
        const nothing = yield* answering(story, run, { unknown: filled({ answer: "red" }) })
        expect(nothing.result).toMatchObject({ resultType: "complete" })
        expect(yield* taskOf(story, run)).toMatchObject({ status: "input_required" })
        for (const answer of ["blue", "red"])
          expect((yield* answering(story, run, { [keyOf(task)]: filled({ answer }) })).error).toBeUndefined()
        const done = yield* taskWhen(story, run, "completed")
        expect(done.result.content[0].text).toContain("blue")
        expect(done.result.content[0].text).not.toContain("red")
      })
    )

    it.effect("an answer or a reason that no other door takes is not taken here either", () =>
      Effect.gen(function* () {
        const story = yield* newStoryHere
        const { question, run } = yield* asked(story, asking("Why?"))
        const key = keyOf(yield* taskOf(story, run))
        for (const answer of ["", " \n\t", "x".repeat(20_001)]) {
          const { error } = yield* answering(story, run, { [key]: filled({ answer }) })
          expect(error).toMatchObject({ code: -32_602, message: expect.stringContaining("/answer: ") })
        }
        expect(yield* questionsOf(story)).toMatchObject([{ id: question.id }])
        yield* answering(story, run, { [key]: filled({ answer: "x".repeat(20_000) }) })
        yield* taskWhen(story, run, "completed")

        const other = yield* newStoryHere
        const { run: suggesting, task } = yield* suggested(other, {
          tool: "create_object",
          arguments: { type: "Note", properties: {} }
        })
        const rejecting = (reason: string) =>
          answering(other, suggesting, {
            [`review:${task.id}:${task.digest}`]: filled({ decision: "reject", reason })
          })
        expect((yield* rejecting("x".repeat(2_001))).error).toMatchObject({
          code: -32_602,
          message: expect.stringContaining("/reason: ")
        })
        expect(yield* other.get(`/tasks/${task.id}`)).toMatchObject({ status: "pending" })
        yield* rejecting("x".repeat(2_000))
        expect(yield* other.get(`/tasks/${task.id}`)).toMatchObject({ status: "rejected" })
      })
    )

    it.effect("of two questions the one that is answered is asked no more, and the other still is", () =>
      Effect.gen(function* () {
        const story = yield* newStoryHere
        const { run } = yield* asked(story, asking("One?"), asking("Two?"))
        const keys = Object.keys((yield* taskOf(story, run)).inputRequests)
        expect(keys).toHaveLength(2)
        yield* answering(story, run, { [keys[0] ?? ""]: filled({ answer: "1" }) })
        const rest = yield* taskOf(story, run)
        expect([rest.status, Object.keys(rest.inputRequests)]).toEqual(["input_required", [keys[1]]])
        yield* answering(story, run, { [keys[1] ?? ""]: filled({ answer: "2" }) })
        yield* taskWhen(story, run, "completed")
      })
    )

    it.effect(
      "whoever declines decides nothing: he is asked no more, and the question waits for somebody else",
      () =>
        Effect.gen(function* () {
          const story = yield* newStoryHere
          const { run } = yield* asked(story, asking("Really?"))
          const other = yield* asUser(story, "editor")
          const task = yield* taskOf(story, run)
          expect(yield* answering(story, run, { [keyOf(task)]: { action: "decline" } })).toHaveProperty(
            "result"
          )
          expect(yield* taskOf(story, run)).toMatchObject({ status: "working" })
          expect(yield* questionsOf(story)).toHaveLength(1)
          expect(yield* taskOf(other, run)).toMatchObject({ status: "input_required" })
          yield* answering(other, run, { [keyOf(task)]: filled({ answer: "yes" }) })
          yield* taskWhen(story, run, "completed")
        })
    )

    it.effect(
      "what a run suggests is decided by an editor, bound to what was shown; to others it is done",
      () =>
        Effect.gen(function* () {
          const story = yield* newStoryHere
          const { run, tasks } = yield* suggested(
            story,
            { tool: "create_object", arguments: { type: "Note", key: "kept", properties: {} } },
            { tool: "create_object", arguments: { type: "Note", key: "dropped", properties: {} } }
          )
          const editor = yield* asUser(story, "editor")
          const viewer = yield* asUser(story, "viewer")
          expect(yield* taskOf(viewer, run)).toMatchObject({ status: "completed" })
          const task = yield* taskOf(editor, run)
          expect(task.status).toBe("input_required")
          const [kept = "", dropped = ""]: ReadonlyArray<string> = tasks.map(
            ({ digest, id }) => `review:${id}:${digest}`
          )
          expect(Object.keys(task.inputRequests)).toEqual([kept, dropped])
          expect(task.inputRequests[kept].params.message).toContain('"kept"')
          const stale = kept.replace(/[0-9a-f]{64}$/, "0".repeat(64))
          yield* answering(editor, run, { [stale]: filled({ decision: "approve" }) })
          // A viewer is not asked: the answer is to nothing.
          yield* answering(viewer, run, { [kept]: filled({ decision: "approve" }) })
          expect((yield* story.get("/objects?type=Note")).items).toEqual([])
          yield* answering(editor, run, {
            [kept]: filled({ decision: "approve" }),
            [dropped]: filled({ decision: "reject", reason: "No need" })
          })
          expect(yield* taskOf(editor, run)).toMatchObject({ status: "completed" })
          expect((yield* story.get("/objects?type=Note")).items).toMatchObject([{ key: "kept" }])
          expect(yield* story.get(`/tasks/${tasks[1].id}`)).toMatchObject({
            status: "rejected",
            resolutionNote: "No need"
          })
        })
    )

    it.effect(
      "a run that a limit stopped waits for a word; to a client that shows no forms it is done for now",
      () =>
        Effect.gen(function* () {
          const story = yield* newStoryHere
          const model = scripted([
            { when: "step < 2", calls: [{ tool: "search_objects", arguments: { type: "T{{ step }}" } }] },
            { say: "Half of it." }
          ])
          const run = yield* begun(story, { maxSteps: 1, model })
          const task = yield* taskWhen(story, run, "input_required")
          expect(keyOf(task)).toMatch(/^resume:/)
          expect(task.inputRequests[keyOf(task)].params.requestedSchema.properties.decision.enum).toEqual([
            "resume",
            "stop"
          ])
          const partial = yield* taskOf(story, run, withoutForms)
          expect(partial).toMatchObject({ status: "completed", result: { isError: false } })
          expect(partial.result.content[0].text).toMatch(/\b2\b/)
          yield* answering(story, run, { [keyOf(task)]: filled({ decision: "stop" }) })
          expect(yield* taskOf(story, run)).toMatchObject({ status: "cancelled" })
        })
    )

    it.effect("a task that is missing, another project's or no id at all is the same to whoever asks", () =>
      Effect.gen(function* () {
        const story = yield* newStoryHere
        const foreign = yield* begun(yield* newStoryHere)
        const errors = yield* Effect.forEach(["tasks/get", "tasks/cancel", "tasks/update"], (method) =>
          Effect.forEach([foreign.id, "01990000-0000-7000-8000-000000000000", "nonsense"], (taskId) =>
            Effect.map(
              rpc(story, method, { taskId, ...(method === "tasks/update" ? { inputResponses: {} } : {}) }),
              ({ error }) => error
            )
          )
        )
        const [first] = errors.flat()
        expect(first).toEqual({ code: -32_602, message: expect.any(String) })
        for (const error of errors.flat()) expect(error).toEqual(first)
        const viewer = yield* asUser(story, "viewer")
        const run = yield* begun(story, { model: scripted([{ say: "Late.", latencyMs: 600_000 }]) })
        const denied = yield* rpc(viewer, "tasks/cancel", { taskId: run.id })
        expect(denied.error).toMatchObject({ message: naming("editor", "viewer") })
        const identity = yield* rpc(story, "tasks/get", { taskId: run.id, user_id: "ada" })
        expect(identity.error).toMatchObject({ code: -32_602, message: expect.stringContaining("/user_id") })
        yield* resultOf(story, "tasks/cancel", { taskId: run.id })
      })
    )
  })
})
