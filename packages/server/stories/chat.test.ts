/**
 * Chat: a request says something, and its answer comes whole or as it is made.
 */
import { describe, expect, layer } from "@effect/vitest"
import { Effect } from "effect"
import { answered, chat, contextOf, newAssistant, streamed } from "../testing/chat-words.ts"
import { contentsOf, echo, quietLog } from "../testing/context-words.ts"
import { type Json, scripted, type Story } from "../testing/platform.ts"
import { expectProblem } from "../testing/problem-words.ts"
import { asking } from "../testing/question-words.ts"
import { newStoryHere, SharedServer } from "../testing/shared-server.ts"
import { asUser } from "../testing/token-words.ts"

/** Adds a task, lists them, and says what it did. */
const adding = scripted([
  {
    when: "step == 0",
    say: "One moment.",
    calls: [{ tool: "add_task", arguments: { title: "{{ message }}" } }]
  },
  { when: "step == 1", calls: [{ tool: "list_tasks", arguments: { status: "pending" } }] },
  { say: "Task #1 is on your list." }
])

const runsOn = (story: Story) => Effect.map(story.get("/runs"), (page): ReadonlyArray<Json> => page.items)

layer(SharedServer.layer, { excludeTestServices: true })((it) => {
  describe("Stateless request lifecycle", () => {
    it.effect(
      "P3-MCP-08 S003-R25 S003-R28 S003-R32 S003-R33 a message without a conversation begins one, and the next goes on with it",
      () =>
        Effect.gen(function* () {
          const story = yield* newStoryHere
          const agent = yield* newAssistant(story, echo)
          const first = yield* answered(story, { agentId: agent.id, message: "Show me\nmy tasks" })
          const [run] = yield* runsOn(story)
          expect(first).toEqual({
            conversationId: expect.any(String),
            status: "completed",
            response: "Answer 1: Show me\nmy tasks",
            toolCalls: [],
            runId: run.id,
            conversation_id: first.conversationId,
            tool_calls: []
          })
          const { conversationId } = first
          const second = yield* answered(story, { conversationId, message: "And now?" })
          expect(second).toMatchObject({ conversationId, response: "Answer 2: And now?" })
          const log = yield* quietLog(story, contextOf(conversationId))
          expect(contentsOf(log, "UserMessageEvent")).toEqual(["Show me\nmy tasks", "And now?"])
          expect(contentsOf(log, "AssistantMessageEvent")).toEqual([first.response, second.response])
        })
    )

    it.effect(
      "S003-R25 S003-R34 conversation_id is taken, and conversation_id and tool_calls are answered beside the other names",
      () =>
        Effect.gen(function* () {
          const story = yield* newStoryHere
          const agent = yield* newAssistant(story, adding)
          const first = yield* answered(story, { agentId: agent.id, message: "Buy milk" })
          const { conversation_id: same } = first
          expect([same, first.tool_calls]).toEqual([first.conversationId, first.toolCalls])
          expect(first.tool_calls).toHaveLength(2)
          const heard = yield* streamed(story, { conversation_id: same, message: "And now?" })
          for (const name of ["begun", "done"])
            expect(heard.find((event) => event.name === name)?.json).toMatchObject({
              conversationId: same,
              conversation_id: same
            })
          yield* answered(story, { conversation_id: same, conversationId: same, message: "Once more" })
          const both = { conversation_id: same, conversationId: crypto.randomUUID(), message: "Whose?" }
          expectProblem(yield* chat(story, both), 422, "/conversation_id")
          expect(contentsOf(yield* quietLog(story, contextOf(same)), "UserMessageEvent")).toHaveLength(3)
        })
    )

    it.effect("P3-MCP-08 S003-R31 S003-R34 tool calls are told with arguments, result and time", () =>
      Effect.gen(function* () {
        const story = yield* newStoryHere
        const agent = yield* newAssistant(story, adding)
        const answer = yield* answered(story, { agentId: agent.id, message: "Buy milk" })
        expect(answer.response).toBe("Task #1 is on your list.")
        expect(answer.toolCalls).toEqual([
          {
            tool: "add_task",
            arguments: { title: "Buy milk" },
            result: { task_id: 1, status: "created", title: "Buy milk" },
            timestamp: expect.stringMatching(/Z$/)
          },
          {
            tool: "list_tasks",
            arguments: { status: "pending" },
            result: [expect.objectContaining({ id: 1, title: "Buy milk", completed: false })],
            timestamp: expect.stringMatching(/Z$/)
          }
        ])
        expect((yield* story.get("/tasks")).items).toHaveLength(1)
      })
    )

    it.effect("what an agent does for somebody is done for the person of the token", () =>
      Effect.gen(function* () {
        const story = yield* newStoryHere
        const agent = yield* newAssistant(story, adding)
        const other = yield* asUser(story, "editor")
        yield* answered(other, { agentId: agent.id, message: "Buy bread" })
        expect((yield* story.get("/tasks")).items).toEqual([])
        expect((yield* other.get("/tasks")).items.map(({ title }: Json) => title)).toEqual(["Buy bread"])
      })
    )

    it.effect("a question of the agent is its response, and the next message answers it", () =>
      Effect.gen(function* () {
        const story = yield* newStoryHere
        const model = scripted([
          { when: "step == 0", say: "There are two.", calls: [asking("Which one?", ["milk", "bread"])] },
          { say: "Then it is {{ results[0].result.answer }}." }
        ])
        const agent = yield* newAssistant(story, model, { tools: ["run.*"] })
        const first = yield* answered(story, { agentId: agent.id, message: "Delete it" })
        expect(first).toMatchObject({
          status: "waiting",
          response: "There are two.\n\nWhich one? (milk, bread)"
        })
        const { conversationId } = first
        expectProblem(yield* chat(story, { conversationId, message: "eggs" }), 422, "/message")
        const second = yield* answered(story, { conversationId, message: "bread" })
        expect(second).toMatchObject({
          status: "completed",
          response: "Then it is bread.",
          runId: first.runId
        })
        expect(contentsOf(yield* quietLog(story, contextOf(conversationId)), "UserMessageEvent")).toEqual([
          "Delete it"
        ])
      })
    )

    it.effect("a message that is longer than an answer may be is refused, and the question waits on", () =>
      Effect.gen(function* () {
        const story = yield* newStoryHere
        const model = scripted([
          { when: "step == 0", calls: [asking("Which one?")] },
          { say: "{{ results[0].result.answer | size }} characters." }
        ])
        const agent = yield* newAssistant(story, model, { tools: ["run.*"] })
        const { conversationId } = yield* answered(story, { agentId: agent.id, message: "Delete it" })
        const refused = yield* chat(story, { conversationId, message: "x".repeat(20_001) })
        expectProblem(refused, 422, "/message")
        expect(refused.body.detail).toMatch(/\b20,?000\b/)
        const taken = yield* answered(story, { conversationId, message: "x".repeat(20_000) })
        expect(taken).toMatchObject({ status: "completed", response: "20000 characters." })
      })
    )
  })

  describe("What is streamed", () => {
    it.effect("words as they are made, each tool call as it begins and ends, and then the whole answer", () =>
      Effect.gen(function* () {
        const story = yield* newStoryHere
        const agent = yield* newAssistant(story, adding)
        const heard = yield* streamed(story, { agentId: agent.id, message: "Buy milk" })
        const done = heard.at(-1)
        expect([heard[0]?.name, done?.name]).toEqual(["begun", "done"])
        const { conversationId } = done?.json ?? {}
        expect(heard[0]?.json).toEqual({ conversationId, conversation_id: conversationId })
        expect(wordsOf(heard)).toBe("One moment.Task #1 is on your list.")
        expect(callsOf(heard)).toEqual([
          ["add_task", "started"],
          ["add_task", "completed"],
          ["list_tasks", "started"],
          ["list_tasks", "completed"]
        ])
        expect(done?.json).toMatchObject({ status: "completed", response: "Task #1 is on your list." })
        expect(done?.json.toolCalls).toHaveLength(2)
      })
    )
  })

  describe("What is refused at the door, with nothing kept", () => {
    it.effect("a conversation that is missing, somebody else's or another project's is not there", () =>
      Effect.gen(function* () {
        const story = yield* newStoryHere
        const agent = yield* newAssistant(story, echo)
        const { conversationId } = yield* answered(story, { agentId: agent.id, message: "Hello" })
        const other = yield* asUser(story, "reviewer")
        const elsewhere = yield* newStoryHere
        const refusals = yield* Effect.all([
          chat(story, { conversationId: crypto.randomUUID(), message: "Hello" }),
          chat(other, { conversationId, message: "Hello" }),
          chat(elsewhere, { conversationId, message: "Hello" })
        ])
        for (const refusal of refusals) {
          expectProblem(refusal, 404)
          expect(refusal.body).toEqual(refusals[0]?.body)
        }
        expect(contentsOf(yield* quietLog(story, contextOf(conversationId)), "UserMessageEvent")).toEqual([
          "Hello"
        ])
      })
    )

    it.effect("what cannot be said is told with its place", () =>
      Effect.gen(function* () {
        const story = yield* newStoryHere
        const agent = yield* newAssistant(story, echo)
        const other = yield* newAssistant(story, echo)
        const { conversationId } = yield* answered(story, { agentId: agent.id, message: "Hello" })
        const refused: ReadonlyArray<readonly [Json, string]> = [
          [{ agentId: agent.id, message: "" }, "/message"],
          [{ agentId: agent.id, message: " \n " }, "/message"],
          [{ agentId: agent.id, message: "x".repeat(100_001) }, "/message"],
          [{ agentId: agent.id }, "/message"],
          [{ conversationId, agentId: other.id, message: "Hello" }, "/agentId"],
          [{ agentId: agent.id, message: "Hello", user_id: "somebody" }, "/user_id"]
        ]
        for (const [body, pointer] of refused) expectProblem(yield* chat(story, body), 422, pointer)
        expectProblem(
          yield* chat(story, { agentId: agent.id, message: "Hi" }, { "idempotency-key": "k".repeat(256) }),
          422
        )
        expect((yield* story.get("/contexts")).items).toHaveLength(1)
      })
    )

    it.effect(
      "S003-R53 an agent that is not there is 404, as is one that was deleted, and nothing is kept",
      () =>
        Effect.gen(function* () {
          const story = yield* newStoryHere
          const agent = yield* newAssistant(story, echo)
          yield* story.delete(`/agents/${agent.id}`)
          for (const agentId of [crypto.randomUUID(), agent.id, "nope"]) {
            expectProblem(yield* chat(story, { agentId, message: "Hello" }), 404)
            expectProblem(yield* story.ask("POST", "/conversations", { agentId }), 404)
          }
          expect((yield* story.get("/contexts")).items).toEqual([])
        })
    )

    it.effect(
      "S003-R53 who has no token, or may only read, is refused before the agent: nothing is kept and nobody asked",
      () =>
        Effect.gen(function* () {
          const story = yield* newStoryHere
          const agent = yield* newAssistant(story, echo)
          const body = { agentId: agent.id, message: "Hello" }
          const viewer = yield* asUser(story, "viewer")
          expectProblem(yield* chat(story, body, { authorization: "Bearer none" }), 401)
          expectProblem(yield* chat(viewer, body), 403)
          expect((yield* story.get("/contexts")).items).toEqual([])
          expect(yield* runsOn(story)).toEqual([])
        })
    )

    it.effect("a disabled agent answers at once, and keeps nothing", () =>
      Effect.gen(function* () {
        const story = yield* newStoryHere
        const agent = yield* newAssistant(story, echo, { enabled: false })
        const refusal = yield* chat(story, { agentId: agent.id, message: "Hello" })
        expectProblem(refusal, 409)
        expect(refusal.body.reason).toBe("agentDisabled")
        expect((yield* story.get("/contexts")).items).toEqual([])
      })
    )
  })
})

const wordsOf = (heard: ReadonlyArray<Json>): string =>
  heard
    .filter(({ name }) => name === "words")
    .map(({ json }) => json.text)
    .join("")

const callsOf = (heard: ReadonlyArray<Json>) =>
  heard.filter(({ name }) => name === "toolCall").map(({ json }) => [json.tool, json.status])
