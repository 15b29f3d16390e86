/**
 * A run that waits for a client, seen through the other doors: chat, OpenAI's API, MCP, a kill switch, and the steps of a workflow.
 */
import { describe, expect, layer } from "@effect/vitest"
import { Effect, Fiber } from "effect"
import { chat, contextOf, streamed } from "../testing/chat-words.ts"
import {
  answerTool,
  clientConversation,
  pickColour,
  picking,
  repeatingResults,
  summaryNow,
  untilWaiting,
  waitingCalls
} from "../testing/client-tool-words.ts"
import { countOf, logOf, newContext, quietLog } from "../testing/context-words.ts"
import { defineTool, defineWorkflow, newestRun, talk } from "../testing/define-words.ts"
import { shownTo } from "../testing/mcp-runs.ts"
import { taskOf, taskWhen } from "../testing/mcp-extension-words.ts"
import { chunksOf, newModel, openAiClient, outcomeOf, sendCompletion } from "../testing/openai-words.ts"
import { atTheDoor } from "../testing/person-words.ts"
import { eventually, type Json, scripted, type Story } from "../testing/platform.ts"
import { expectProblem } from "../testing/problem-words.ts"
import { ofType } from "../testing/run-words.ts"
import { newStoryHere, SharedServer } from "../testing/shared-server.ts"
import { callsOf } from "../testing/story-words.ts"

/** Calls the client tool when it is asked to pick, and else says hello. */
const picker = scripted([
  { when: "message contains 'Pick' and step == 0", say: "One moment.", calls: [picking()] },
  { when: "message contains 'Pick'", say: "It is {{ results[0].result.colour }}." },
  { say: "Hello." }
])

const answer = "One moment.\n\nIt is green."

const user = (content: string) => ({ role: "user", content }) as const

/** Answers the newest call that waits in a context, once one does. */
const answering = Effect.fnUntraced(function* (story: Story, context: string, count = 1) {
  const calls = yield* waitingCalls(story, count, context)
  yield* eventually(newestRun(story), ({ pauseReason }) => pauseReason === "toolResult")
  const callId: string = calls.at(-1)?.callId
  expect((yield* answerTool(story, callId, { result: { colour: "green" } }, context)).status).toBe(204)
})

const turnSwitch = (story: Story, stopped: boolean) =>
  story.send("PUT", `/api/projects/${story.projectId}/kill-switch`, {
    stopped,
    ...(stopped ? { reason: "An audit" } : {})
  })

layer(SharedServer.layer, { excludeTestServices: true })((it) => {
  describe("S004-F02 while a run waits for a client", () => {
    it.effect("S004-F02 a chat waits on, streamed and whole, and has the answer after the result", () =>
      Effect.gen(function* () {
        const story = yield* newStoryHere
        const agent = yield* newModel(story, "picker", picker)
        const begun = yield* chat(story, { agentId: agent.id, message: "Hi" })
        const { conversationId } = begun.body
        const name = contextOf(conversationId)
        expect((yield* defineTool(story, name, pickColour)).status).toBe(204)
        const stream = yield* Effect.forkChild(streamed(story, { conversationId, message: "Pick." }))
        yield* answering(story, name)
        const heard = yield* Fiber.join(stream)
        const last = heard.at(-1)
        expect([last?.name, last?.json.status]).toEqual(["done", "completed"])
        expect(JSON.stringify(heard)).toContain("It is green.")
        expect(JSON.stringify(heard)).toContain("pick_colour")
        const whole = yield* Effect.forkChild(chat(story, { conversationId, message: "Pick again." }))
        yield* answering(story, name, 2)
        const { body, status } = yield* Fiber.join(whole)
        expect([status, body.status]).toEqual([200, "completed"])
        expect(body.response).toContain("It is green.")
        expect(body.toolCalls).toMatchObject([{ tool: "pick_colour", result: { colour: "green" } }])
      })
    )

    it.effect("S004-F02 OpenAI's clients wait on, streamed and whole, and do not see a call to answer", () =>
      Effect.gen(function* () {
        const story = yield* newStoryHere
        yield* newModel(story, "picker", picker)
        const first = yield* sendCompletion(story, { model: "picker", messages: [user("Hi")] })
        const name = first.headers.get("x-tropism-conversation") ?? ""
        const headers = { "x-tropism-conversation": name }
        expect((yield* defineTool(story, name, pickColour)).status).toBe(204)
        const whole = yield* Effect.forkChild(
          sendCompletion(story, { model: "picker", messages: [user("Pick.")] }, headers)
        )
        yield* answering(story, name)
        const { body, status } = yield* Fiber.join(whole)
        const [choice] = body.choices
        expect([status, choice.finish_reason, choice.message.content]).toEqual([200, "stop", answer])
        expect(choice.message.tool_calls).toBeUndefined()
        const stream = yield* Effect.forkChild(
          Effect.flatMap(
            outcomeOf(() =>
              openAiClient(story).chat.completions.create(
                { model: "picker", messages: [user("Pick again.")], stream: true },
                { headers }
              )
            ),
            chunksOf
          )
        )
        yield* answering(story, name, 2)
        const { chunks, words } = yield* Fiber.join(stream)
        expect(words).toBe(answer)
        expect(chunks.findLast(({ choices }) => choices[0]?.finish_reason)?.choices[0]?.finish_reason).toBe(
          "stop"
        )
      })
    )

    it.effect(
      "S004-F02 MCP shows the run as a task at work that says whom it waits for, and then its end",
      () =>
        Effect.gen(function* () {
          const story = yield* newStoryHere
          yield* clientConversation(story)
          const { callId, run } = yield* untilWaiting(story)
          const waiting = yield* taskOf(story, run)
          expect([waiting.status, waiting.statusMessage]).toEqual([
            "working",
            expect.stringContaining("waits for a client")
          ])
          const person = yield* atTheDoor(story)
          const { isError, result } = yield* person.call("get_run", { runId: run.id })
          expect([isError, result.status, result.pauseReason]).toEqual([false, "paused", "toolResult"])
          yield* answerTool(story, callId, { result: "green" })
          const ended = yield* taskWhen(story, run, "completed")
          expect(ended.result.content[0].text).toContain("green")
        })
    )

    it.effect(
      "S004-F02 S001-K04 an answer during a kill switch is kept, counts once, and is read when it is off",
      () =>
        Effect.gen(function* () {
          const story = yield* newStoryHere
          yield* clientConversation(story)
          const { callId, run } = yield* untilWaiting(story)
          yield* turnSwitch(story, true)
          expect((yield* answerTool(story, callId, { result: "green" })).status).toBe(204)
          const again = yield* answerTool(story, callId, { result: "red" })
          expect([again.status, again.body.reason]).toEqual([409, "answered"])
          expect(yield* story.get(`/runs/${run.id}`)).toMatchObject({ status: "queued", stepCount: 1 })
          yield* turnSwitch(story, false)
          const log = yield* quietLog(story, "talk")
          expect(ofType(log, "ToolCallCompletedEvent")).toMatchObject([{ callId, result: "green" }])
          expect(yield* newestRun(story)).toMatchObject({ id: run.id, status: "completed", stepCount: 2 })
          expect(yield* summaryNow(story)).toBe('pick_colour: "green"; ')
        })
    )

    it.effect("S004-F02 S001-K04 a kill switch that comes and goes leaves the call waiting", () =>
      Effect.gen(function* () {
        const story = yield* newStoryHere
        yield* clientConversation(story, [picking(), picking({ prompt: "And?" })])
        const { calls, run } = yield* untilWaiting(story, 2)
        const [first, second] = calls.map(({ callId }) => callId as string)
        yield* turnSwitch(story, true)
        // Its time goes on: what no client answers in time would fail all the same.
        expect((yield* answerTool(story, first ?? "", { result: "A" })).status).toBe(204)
        yield* turnSwitch(story, false)
        yield* eventually(story.get(`/runs/${run.id}`), ({ pauseReason }) => pauseReason === "toolResult")
        expect((yield* callsOf(story, run)).map(({ status }) => status)).toEqual(["completed", "started"])
        expect((yield* answerTool(story, second ?? "", { result: "B" })).status).toBe(204)
        yield* quietLog(story, "talk")
        expect(yield* summaryNow(story)).toBe('pick_colour: "A"; pick_colour: "B"; ')
      })
    )

    it.effect("S004-F02 S001-K04 a call whose time is over during a kill switch fails once", () =>
      Effect.gen(function* () {
        const story = yield* newStoryHere
        yield* clientConversation(story, [picking()], { timeoutMs: 1_000 })
        const { callId, run } = yield* untilWaiting(story)
        yield* turnSwitch(story, true)
        yield* eventually(logOf(story, "talk"), (log) => countOf(log, "ToolCallFailedEvent") === 1)
        expect(yield* story.get(`/runs/${run.id}`)).toMatchObject({ status: "queued", stepCount: 1 })
        yield* turnSwitch(story, false)
        const log = yield* quietLog(story, "talk")
        expect(ofType(log, "ToolCallFailedEvent")).toMatchObject([{ callId, error: { reason: "timeout" } }])
        expect(yield* newestRun(story)).toMatchObject({ id: run.id, status: "completed" })
      })
    )
  })

  describe("S004-F02 a step of a workflow that lists its tools", () => {
    const steps = (tools: ReadonlyArray<string>) => ({
      flowType: "sequential",
      steps: [
        { name: "look", prompt: "look", tools },
        { name: "check", prompt: "check", tools: ["graph.get_object"] }
      ]
    })

    it.effect.each([["client.pick_colour"], ["client.*"]])(
      "S004-F02 has the client tools that its list names: %s",
      ([named = ""]) =>
        Effect.gen(function* () {
          const story = yield* newStoryHere
          yield* newContext(
            story,
            "talk",
            scripted([
              { when: "message contains 'look' and step == 0", calls: [picking()] },
              { say: "{{ message }} {{ results | json }}" }
            ])
          )
          yield* defineTool(story, "talk", pickColour)
          yield* defineTool(story, "talk", { ...pickColour, name: "other_tool" })
          expect((yield* defineWorkflow(story, "talk", steps([named, "graph.get_object"]))).status).toBe(204)
          const { callId, run } = yield* untilWaiting(story)
          const shown = (yield* shownTo(story, run)).map(({ name }: Json) => name)
          expect(shown).toContain("pick_colour")
          expect(shown.includes("other_tool")).toBe(named === "client.*")
          expect((yield* answerTool(story, callId, { result: "green" })).status).toBe(204)
          yield* quietLog(story, "talk")
          const { items } = yield* story.get(`/runs/${run.id}/model-calls`)
          const last = yield* story.get(`/runs/${run.id}/model-calls/${items.length}`)
          expect(last.request.tools.map(({ name }: Json) => name)).toEqual(["get_object"])
          expect((yield* story.get("/verify")).differences).toEqual([])
        })
    )

    it.effect("S004-F02 has none that its list does not name, and the name client is no server's", () =>
      Effect.gen(function* () {
        const story = yield* newStoryHere
        yield* newContext(story, "talk", repeatingResults(picking()))
        yield* defineTool(story, "talk", pickColour)
        yield* defineWorkflow(story, "talk", steps(["graph.search_objects"]))
        yield* talk(story, "talk", "Go")
        const run = yield* newestRun(story)
        expect((yield* callsOf(story, run)).map(({ status }) => status)).toContain("refused")
        const transport = { type: "http", url: "https://example.com/mcp" }
        expectProblem(yield* story.ask("POST", "/mcp-servers", { name: "client", transport }), 422, "/name")
      })
    )
  })
})
