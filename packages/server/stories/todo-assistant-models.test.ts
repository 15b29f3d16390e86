/**
 * TodoAssistant on a server that has keys: the model of the specification, and another where that one is away.
 */
import { describe, expect, it } from "@effect/vitest"
import { ConfigProvider, Effect } from "effect"
import { type FakeAnswer, serveAnswers, streaming } from "../testing/fake-model-server.ts"
import { answered } from "../testing/chat-words.ts"
import { freshDatabase } from "../testing/fresh-database.ts"
import { type Json, newProject, startServer } from "../testing/platform.ts"
import { anthropicMessages } from "../testing/providers/anthropic-messages.ts"
import { openaiChat } from "../testing/providers/openai-chat.ts"

const key = "secret-key-abcdef-0123456789"

/** A project on a server that has the keys of both providers, who answer so. */
const sceneOf = Effect.fnUntraced(function* (
  openaiAnswers: readonly [FakeAnswer, ...ReadonlyArray<FakeAnswer>],
  anthropicAnswers: readonly [FakeAnswer, ...ReadonlyArray<FakeAnswer>]
) {
  const openai = yield* serveAnswers(...openaiAnswers)
  const anthropic = yield* serveAnswers(...anthropicAnswers)
  const access = yield* freshDatabase
  const env = { ...anthropicMessages.env(anthropic.url, key), ...openaiChat.env(openai.url, key) }
  const doors = yield* startServer(access).pipe(
    Effect.provide(ConfigProvider.layer(ConfigProvider.fromEnv({ env })))
  )
  const story = yield* newProject(doors, access)
  const { items } = yield* story.get("/agents")
  return { story, openai, anthropic, assistant: items.find(({ name }: Json) => name === "TodoAssistant") }
})

const adding = { id: "call_1", name: "add_task", pieces: ['{"title": ', '"Buy milk"}'] }
const silence: FakeAnswer = { kind: "json", status: 500, body: {} }

describe("Requirement: Agent Model", () => {
  it.live(
    "S003-R07 S003-R10 S003-R11 S003-R31 where there is a key of OpenAI's it asks gpt-4o as specified",
    () =>
      Effect.gen(function* () {
        const { anthropic, assistant, openai, story } = yield* sceneOf(
          [
            streaming(openaiChat.answer({ calls: [adding] })),
            streaming(openaiChat.answer({ words: ["I added", " task #1."] }))
          ],
          [silence]
        )
        const answer = yield* answered(story, { message: "Add a task to buy milk" })
        expect(answer).toMatchObject({
          status: "completed",
          response: "I added task #1.",
          toolCalls: [
            { tool: "add_task", arguments: { title: "Buy milk" }, result: { task_id: 1, status: "created" } }
          ]
        })
        const asked: Json = openai.requests[0]?.body
        expect(asked).toMatchObject({ model: "gpt-4o", temperature: 0.7 })
        expect(asked.max_tokens ?? asked.max_completion_tokens).toBe(1024)
        expect(asked.messages[0].content).toBe(assistant.systemPrompt)
        expect(asked.messages.at(-1)).toMatchObject({ role: "user", content: "Add a task to buy milk" })
        expect(asked.tools.map((tool: Json) => tool.function.name).toSorted()).toEqual([
          "add_task",
          "complete_task",
          "delete_task",
          "list_tasks",
          "update_task"
        ])
        expect(JSON.stringify(asked.tools)).not.toContain("user_id")
        expect(openai.requests).toHaveLength(2)
        expect(anthropic.requests).toEqual([])
        const { items } = yield* story.get("/runs")
        expect(items.map(({ model }: Json) => model)).toEqual(["openai:gpt-4o"])
      }).pipe(Effect.scoped)
  )

  it.live(
    "S003-R54 S003-R07 where gpt-4o is refused, the fallback that somebody named answers, with the same tools",
    () =>
      Effect.gen(function* () {
        const { anthropic, assistant, openai, story } = yield* sceneOf(
          [{ kind: "json", status: 401, body: openaiChat.refusal(401, "No such key.") }],
          [
            streaming(anthropicMessages.answer({ calls: [adding] })),
            streaming(anthropicMessages.answer({ words: ["Task #1 is there."] }))
          ]
        )
        const refused = yield* answered(story, { message: "Add milk" })
        expect(refused).toMatchObject({
          status: "failed",
          response: expect.stringMatching(/\S/)
        })
        expect(anthropic.requests).toEqual([])
        const fallback = { provider: "anthropic", name: "claude-sonnet-4-5" }
        yield* story.patch(`/agents/${assistant.id}`, { model: { ...assistant.model, fallback } })
        const asked = openai.requests.length
        const answer = yield* answered(story, { message: "Add milk" })
        expect(answer).toMatchObject({
          status: "completed",
          response: "Task #1 is there.",
          toolCalls: [{ tool: "add_task", result: { task_id: 1, status: "created", title: "Buy milk" } }]
        })
        expect(openai.requests.length).toBeGreaterThan(asked)
        const request: Json = anthropic.requests[0]?.body
        expect(request).toMatchObject({ model: "claude-sonnet-4-5", temperature: 0.7, max_tokens: 1024 })
        expect(request.tools).toHaveLength(5)
        expect((yield* story.get("/tasks")).items.map(({ title }: Json) => title)).toEqual(["Buy milk"])
      }).pipe(Effect.scoped)
  )
})
