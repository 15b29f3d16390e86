/**
 * A run driven as a task by the clients of others, in both revisions.
 */
import { describe, expect, layer } from "@effect/vitest"
import { Effect, Fiber } from "effect"
import { resultFromTaskOutcome } from "@modelcontextprotocol/ext-tasks/client"
import { filled } from "../testing/mcp-extension-words.ts"
import { type Answers, taskClient, taskSession } from "../testing/mcp-task-clients.ts"
import { asking, revisions } from "../testing/mcp-clients.ts"
import { holding, lockOf } from "../testing/owner-rows.ts"
import { eventually, type Json, scripted, startServer, type Story, storyIn } from "../testing/platform.ts"
import { answer, asker, asking as question, askingModel, questionsOf } from "../testing/question-words.ts"
import { newStoryHere, SharedServer } from "../testing/shared-server.ts"
import { watcher } from "../testing/story-words.ts"
import { pendingOf } from "../testing/suggestion-words.ts"

/** An agent that asks for a colour, suggests a note, and says what it was told. */
const painter = (story: Story) =>
  story.post(
    "/agents",
    watcher({
      name: "painter",
      triggerType: "manual",
      reactionConfig: null,
      executionMode: "suggest",
      tools: ["run.ask_user", "graph.*"],
      model: scripted([
        { when: "step == 0", calls: [{ tool: "ask_user", arguments: { question: "Which colour?" } }] },
        {
          when: "step == 1",
          calls: [{ tool: "create_object", arguments: { type: "Note", key: "painted", properties: {} } }]
        },
        { say: "{{ results[0].result.answer }}" }
      ])
    })
  )

const worker = (story: Story, model: Json) =>
  story.post("/agents", watcher({ name: "worker", triggerType: "manual", reactionConfig: null, model }))

/** Blue, and yes. */
const agreeable: Answers = ({ message }) =>
  filled(message === "Which colour?" ? { answer: "blue" } : { decision: "approve" }) as ReturnType<Answers>

const call = (agent: Json, more: Json = {}) => ({
  name: "trigger_agent",
  arguments: { agent: agent.name, ...more }
})

const begin = (client: Parameters<typeof asking>[0], agent: Json) =>
  Effect.map(asking(client, "tools/call", { ...call(agent), task: { ttl: 60_000 } }), ({ task }) => task)

layer(SharedServer.layer, { excludeTestServices: true })((it) => {
  describe("The extension's own client", () => {
    it.effect("drives a run through its question and its suggestion to its result", () =>
      Effect.gen(function* () {
        const story = yield* newStoryHere
        const agent = yield* painter(story)
        const session = yield* taskSession(story, "2026-07-28", agreeable)
        const seen: Array<string> = []
        const execution = yield* Effect.promise(() =>
          session.callTool("trigger_agent", call(agent).arguments)
        )
        expect(execution.kind).toBe("task")
        const { outcome } = yield* Effect.promise(() =>
          execution.settle({
            onEvent: (event: Json) => void (event.task === undefined || seen.push(event.task.status))
          })
        )
        expect(resultFromTaskOutcome(outcome)).toMatchObject({
          isError: false,
          content: [{ type: "text", text: "blue" }]
        })
        expect(new Set(seen)).toContain("input_required")
        expect((yield* story.get("/objects?type=Note")).items).toMatchObject([{ key: "painted" }])
        expect(yield* pendingOf(story)).toEqual([])
      })
    )

    it.effect("stops a run, and is told alike of what is missing and what is another project's", () =>
      Effect.gen(function* () {
        const story = yield* newStoryHere
        const elsewhere = yield* newStoryHere
        for (const revision of revisions) {
          const late = yield* worker(story, scripted([{ say: "Late.", latencyMs: 600_000 }]))
          const session = yield* taskSession(story, revision)
          const execution = yield* Effect.promise(() =>
            session.callTool("trigger_agent", call(late).arguments, { task: { preference: "prefer" } })
          )
          const taskId = (execution.handle as Json).taskId
          yield* Effect.promise(() => session.cancelTask(taskId))
          const { outcome } = yield* Effect.promise(() => execution.settle())
          expect(outcome).toMatchObject({ status: "cancelled" })
          expect(yield* story.get(`/runs/${taskId}`)).toMatchObject({ status: "cancelled" })
          const foreign = yield* worker(elsewhere, scripted([{ say: "Done." }]))
          const run = yield* elsewhere.post(`/agents/${foreign.id}/trigger`)
          const told = yield* Effect.forEach([run.id, crypto.randomUUID(), "nonsense"], (id) =>
            Effect.promise(() =>
              session
                .task(id)
                .snapshot()
                .catch((error: Json) => error.message)
            )
          )
          expect(new Set(told).size).toBe(1)
          expect(told[0]).toMatch(/\S/)
          yield* story.delete(`/agents/${late.id}`)
          yield* elsewhere.delete(`/agents/${foreign.id}`)
        }
      })
    )
  })

  describe("A client of 2025-11-25", () => {
    it.effect("asks for a task with its call, and the extension's client brings its result", () =>
      Effect.gen(function* () {
        const story = yield* newStoryHere
        const agent = yield* worker(story, scripted([{ say: "All is well." }]))
        const failing = yield* story.post(
          "/agents",
          watcher({
            name: "failing",
            triggerType: "manual",
            reactionConfig: null,
            model: { provider: "openai", name: "gpt-4o" }
          })
        )
        const session = yield* taskSession(story, "2025-11-25")
        const prefer = { task: { preference: "prefer" } } as const
        const execution = yield* Effect.promise(() =>
          session.callTool("trigger_agent", call(agent).arguments, prefer)
        )
        expect(execution.kind).toBe("task")
        const { outcome } = yield* Effect.promise(() => execution.settle())
        expect(resultFromTaskOutcome(outcome)).toMatchObject({
          content: [{ type: "text", text: "All is well." }]
        })
        const failed = yield* Effect.promise(() =>
          session.callTool("trigger_agent", call(failing).arguments, prefer)
        )
        const { lastTask } = yield* Effect.promise(() => failed.settle())
        expect(lastTask).toMatchObject({ status: "failed" })
        const { tasks } = yield* Effect.promise(() => session.listTasks())
        expect(tasks.map(({ status, taskId }) => [taskId, status])).toEqual([
          [failed.handle?.taskId, "failed"],
          [execution.handle?.taskId, "completed"]
        ])
        const plain = yield* Effect.promise(() => session.callTool("trigger_agent", call(agent).arguments))
        expect(plain.kind).toBe("immediate")
      })
    )

    it.effect("is asked while it waits for the result, and no more once somebody else has answered", () =>
      Effect.gen(function* () {
        const story = yield* newStoryHere
        const agent = yield* painter(story)
        const asked: Array<Json> = []
        const client = yield* taskClient(story, "2025-11-25", (params) => {
          asked.push(params)
          return agreeable(params)
        })
        // No worker takes its run before that is answered.
        const claims = yield* holding(story.access, lockOf("claims"))
        const task = yield* begin(client, agent)
        yield* claims.query("commit")
        expect(task).toMatchObject({ status: "working", ttl: null, pollInterval: expect.any(Number) })
        expect(task).not.toHaveProperty("ttlMs")
        const result = yield* asking(client, "tasks/result", { taskId: task.taskId })
        const related = { "io.modelcontextprotocol/related-task": { taskId: task.taskId } }
        expect(result).toMatchObject({ content: [{ text: "blue" }], isError: false, _meta: related })
        expect(asked).toMatchObject([{ message: "Which colour?", _meta: related }, { _meta: related }])
        expect((yield* story.get("/objects?type=Note")).items).toMatchObject([{ key: "painted" }])
        expect(yield* asking(client, "tasks/get", { taskId: task.taskId })).toMatchObject({
          taskId: task.taskId,
          status: "completed"
        })

        const silent = yield* taskClient(story, "2025-11-25", () => new Promise(() => {}) as never)
        const other = yield* asker(story, askingModel(question("Which shade?")))
        const second = yield* begin(silent, other)
        const waiting = yield* Effect.forkChild(asking(silent, "tasks/result", { taskId: second.taskId }))
        const [waits] = yield* eventually(questionsOf(story), (items) => items.length === 1)
        yield* answer(story, { id: second.taskId }, "red", waits)
        expect(yield* Fiber.join(waiting)).toMatchObject({
          content: [{ text: expect.stringContaining("red") }]
        })
      })
    )

    it.effect("is refused in words: what is no task, has ended, or is not there", () =>
      Effect.gen(function* () {
        const story = yield* newStoryHere
        const agent = yield* worker(story, scripted([{ say: "Late.", latencyMs: 600_000 }]))
        const client = yield* taskClient(story, "2025-11-25", agreeable)
        const none = yield* asking(client, "tools/call", { name: "list_agents", arguments: {}, task: {} })
        expect(none.error).toMatchObject({ code: -32_601, message: expect.stringContaining("list_agents") })
        const { taskId } = yield* begin(client, agent)
        expect(yield* asking(client, "tasks/cancel", { taskId })).toMatchObject({ status: "cancelled" })
        for (const method of ["tasks/cancel", "tasks/result"])
          expect((yield* asking(client, method, { taskId })).error).toMatchObject({ code: -32_602 })
        for (const method of ["tasks/get", "tasks/cancel", "tasks/result"])
          expect((yield* asking(client, method, { taskId: crypto.randomUUID() })).error).toMatchObject({
            code: -32_602
          })
        expect((yield* asking(client, "tasks/list", { cursor: "nowhere" })).error.code).toBe(-32_602)
        expect((yield* asking(client, "tasks/update", { taskId, inputResponses: {} })).error.code).toBe(
          -32_601
        )
      })
    )

    it.effect("sees the same on every server: that it shows forms is known by its session", () =>
      Effect.gen(function* () {
        const story = yield* newStoryHere
        const other = storyIn(yield* startServer(story.access), story.access, story.projectId)
        const agent = yield* painter(story)
        const client = yield* taskClient(story, "2025-11-25", agreeable)
        const { taskId } = yield* begin(client, agent)
        yield* eventually(
          asking(client, "tasks/get", { taskId }),
          ({ status }) => status === "input_required"
        )
        const sessionId = (client.transport as Json).sessionId
        const adopted = yield* Effect.promise(() =>
          fetch(new URL(`/api/projects/${story.projectId}/mcp`, other.url), {
            method: "POST",
            headers: {
              authorization: `Bearer ${story.token}`,
              "content-type": "application/json",
              accept: "application/json, text/event-stream",
              "mcp-session-id": sessionId,
              "mcp-protocol-version": "2025-11-25"
            },
            body: JSON.stringify({ jsonrpc: "2.0", id: 7, method: "tasks/get", params: { taskId } })
          }).then((response) => response.text())
        )
        expect(adopted).toContain('"status":"input_required"')
      })
    )
  })

  describe("A client that does not know tasks", () => {
    it.effect("gets the result of the run, and no task", () =>
      Effect.gen(function* () {
        const story = yield* newStoryHere
        const agent = yield* worker(story, scripted([{ say: "All is well." }]))
        for (const revision of revisions) {
          const client = yield* taskClient(story, revision, agreeable)
          const result = yield* Effect.promise(() => client.callTool(call(agent)))
          expect(result).toMatchObject({ structuredContent: { status: "completed" } })
          expect(result).not.toHaveProperty("task")
          const { tools } = yield* Effect.promise(() => client.listTools())
          const support = tools.map(({ execution, name }) => [name, execution?.taskSupport])
          expect(support.filter(([, supported]) => supported !== undefined)).toEqual(
            revision === "2025-11-25" ? [["trigger_agent", "optional"]] : []
          )
        }
      })
    )
  })
})
