/**
 * The words in which stories chat with an agent.
 */
import { Effect } from "effect"
import { type Heard, heardIn } from "./event-stream.ts"
import type { Answer, Json, Story } from "./platform.ts"

/** An agent like TodoAssistant: it keeps the todos of whoever speaks with it. */
export const newAssistant = (story: Story, model: Json, overrides: Record<string, unknown> = {}) =>
  story.post("/agents", {
    name: `assistant-${crypto.randomUUID().slice(0, 8)}`,
    prompt: "Keep the todos.",
    systemPrompt: "You keep todos.",
    triggerType: "manual",
    tools: ["tasks.*"],
    model,
    ...overrides
  })

/** Sends a message, and waits for what is answered. */
export const chat = (
  story: Story,
  body: unknown,
  headers: Record<string, string> = {},
  query = ""
): Effect.Effect<Answer> => story.send("POST", `/api/projects/${story.projectId}/chat${query}`, body, headers)

/** The same where it must be answered with 200. */
export const answered = (
  story: Story,
  body: unknown,
  headers: Record<string, string> = {}
): Effect.Effect<Json> =>
  Effect.flatMap(chat(story, body, headers), (answer) =>
    answer.status === 200
      ? Effect.succeed(answer.body)
      : Effect.die(new Error(`POST /chat answered ${answer.status}: ${JSON.stringify(answer.body)}`))
  )

/** What is streamed until the answer is whole. */
export const streamed = (
  story: Story,
  body: unknown,
  headers: Record<string, string> = {}
): Effect.Effect<ReadonlyArray<Heard>> =>
  Effect.map(chat(story, body, { accept: "text/event-stream", ...headers }), (answer) =>
    heardIn(String(answer.body))
  )

/** The context whose log a conversation is. */
export const contextOf = (conversationId: string): string => `chat-${conversationId}`

export const keyed = (key: string) => ({ "idempotency-key": key })
