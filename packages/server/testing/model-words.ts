/**
 * A whole server whose models answer over a real socket, for stories about what goes over the wire.
 */
import { ConfigProvider, Effect } from "effect"
import {
  chatChunk,
  chatEnd,
  events,
  type FakeAnswer,
  type FakeModelServer,
  serveAnswers
} from "./fake-model-server.ts"
import { freshDatabase } from "./fresh-database.ts"
import { type Json, newProject, startServer, type Story } from "./platform.ts"

export const modelKey = "a-key-that-nobody-may-see-0123456789"

/** The model that the server below is asked as. */
export const wireModel = {
  provider: "openai-compatible",
  name: "wire-1",
  temperature: 0.25,
  maxOutputTokens: 77
}

/** An agent that asks that model when somebody triggers it. */
export const wiredAgent = {
  name: "helper",
  role: "Helps.",
  prompt: "Help.",
  triggerType: "manual",
  executionMode: "execute",
  tools: ["graph.*"],
  model: wireModel
}

export interface WiredStory {
  readonly story: Story
  readonly models: FakeModelServer
}

/** A server with a project, and with one model server that gives these answers in turn. */
export const wiredStory = Effect.fn("wiredStory")(function* (
  answers: readonly [FakeAnswer, ...ReadonlyArray<FakeAnswer>],
  env: Record<string, string> = {}
) {
  const models = yield* serveAnswers(...answers)
  const access = yield* freshDatabase
  const doors = yield* startServer(access).pipe(
    Effect.provide(
      ConfigProvider.layer(
        ConfigProvider.fromEnv({
          env: {
            OPENAI_COMPATIBLE_BASE_URL: `${models.url}/v1`,
            OPENAI_COMPATIBLE_API_KEY: modelKey,
            ...env
          }
        })
      )
    )
  )
  const wired: WiredStory = { story: yield* newProject(doors, access), models }
  return wired
})

/** An answer that is text. */
export const says = (text: string): FakeAnswer => events(chatChunk({ content: text }), ...chatEnd("stop"))

/** An answer that asks for tools. */
export const calls = (
  ...wanted: ReadonlyArray<{ readonly id: string; readonly tool: string; readonly arguments: Json }>
): FakeAnswer =>
  events(
    chatChunk({
      tool_calls: wanted.map((call, index) => ({
        index,
        id: call.id,
        type: "function",
        function: { name: call.tool, arguments: JSON.stringify(call.arguments) }
      }))
    }),
    ...chatEnd("tool_calls")
  )

/** A refusal of the whole request. */
export const refuses = (status: number, message: string): FakeAnswer => ({
  kind: "json",
  status,
  body: { error: { message, type: "server_error" } }
})

/** Messages of a context as chat completions carry them, neighbours of one role as one, with arguments and results as values. */
export const asChat = (messages: ReadonlyArray<Json>): ReadonlyArray<Json> =>
  eachAsChat(messages).reduce<ReadonlyArray<Json>>((before, next) => {
    const last = before.at(-1)
    return last?.role === "user" && next.role === "user"
      ? [...before.slice(0, -1), { role: "user", content: `${last.content}\n\n${next.content}` }]
      : [...before, next]
  }, [])

const eachAsChat = (messages: ReadonlyArray<Json>): ReadonlyArray<Json> =>
  messages.flatMap((message) => {
    switch (message.role) {
      case "system":
      case "user":
        return [{ role: message.role, content: message.content }]
      case "assistant":
        return [
          {
            role: "assistant",
            text: message.content.flatMap((part: Json) => (part.type === "text" ? [part.text] : [])).join(""),
            calls: message.content.flatMap((part: Json) =>
              part.type === "tool-call" ? [{ id: part.id, name: part.name, arguments: part.params }] : []
            )
          }
        ]
      default:
        return message.content.map((part: Json) => ({ role: "tool", id: part.id, result: part.result }))
    }
  })

/** The messages of a request as a model server received them, in the same form. */
export const receivedChat = (body: Json): ReadonlyArray<Json> =>
  body.messages.map((message: Json) => {
    if (message.role === "assistant")
      return {
        role: "assistant",
        text: message.content ?? "",
        calls: (message.tool_calls ?? []).map((call: Json) => ({
          id: call.id,
          name: call.function.name,
          arguments: JSON.parse(call.function.arguments)
        }))
      }
    if (message.role === "tool")
      return { role: "tool", id: message.tool_call_id, result: JSON.parse(message.content) }
    return { role: message.role, content: message.content }
  })

/** The tools of a request as a model server received them. */
export const receivedTools = (body: Json): ReadonlyArray<Json> =>
  (body.tools ?? []).map((tool: Json) => ({
    name: tool.function.name,
    description: tool.function.description,
    inputSchema: tool.function.parameters
  }))
