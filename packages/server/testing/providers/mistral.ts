/**
 * Mistral's chat completions.
 *
 * Published examples: the answers of the tests of vercel/ai
 * (`mistral-text.chunks.txt`, `mistral-tool-call.chunks.txt`), shortened. A call
 * comes whole, its id has nine letters and digits. A refusal is
 * `{"object":"error","message",…}`, from the gateway before it `{"message"}` or `{"detail"}`.
 */
import type { ModelConfig } from "@tropism/domain/model-config"
import { dataEvents, finish, type StreamedCall, type WireFormat } from "./wire-format.ts"

const model: ModelConfig = {
  provider: "mistral",
  name: "mistral-medium-3-5",
  temperature: 0.5,
  maxOutputTokens: 99
}

const chunk = (delta: unknown, finishReason: string | null = null, usage?: readonly [number, number]) => ({
  id: "b9e43f82d6c74a1e9f5b2c8e7a9d4f6b",
  object: "chat.completion.chunk",
  created: 1750538000,
  model: "mistral-medium-2604",
  choices: [{ index: 0, delta, finish_reason: finishReason }],
  ...(usage === undefined
    ? {}
    : {
        usage: {
          prompt_tokens: usage[0],
          total_tokens: usage[0] + usage[1],
          completion_tokens: usage[1]
        }
      })
})

const opening = chunk({ role: "assistant", content: "" })
const words = (texts: ReadonlyArray<string>) => texts.map((content) => chunk({ content }))

const callOf = ({ id, name, pieces }: StreamedCall, index: number) => ({
  id,
  function: { name, arguments: pieces.join("") },
  index
})

const ends = { length: "length", filter: "error" } as const

/** The ids `call_paris` and `call_rome` as Mistral takes them. */
const [paris, rome] = ["lbDMvoxdj", "lPWow9SEF"] as const

const call = (id: string, location: string) => ({
  id,
  type: "function",
  function: { name: "get_weather", arguments: `{"location":"${location}"}` }
})

export const mistral: WireFormat = {
  title: "Mistral chat completions",
  model,
  env: (url, key) => ({ MISTRAL_API_KEY: key, MISTRAL_BASE_URL: `${url}/v1` }),
  path: "/v1/chat/completions",
  keyHeader: "authorization",
  published: [
    {
      what: "text",
      chunks: dataEvents(
        opening,
        ...words(["Hello", "!"]),
        chunk({ content: "" }, "stop", [13, 8]),
        "[DONE]"
      ),
      parts: [{ type: "text", delta: "Hello" }, { type: "text", delta: "!" }, finish(model, "stop", 13, 8)]
    },
    {
      what: "a tool call",
      chunks: dataEvents(
        opening,
        chunk(
          {
            content: "",
            tool_calls: [
              { id: "gSIMJiOkT", function: { name: "weather", arguments: '{"location": "Paris"}' }, index: 0 }
            ]
          },
          "tool_calls",
          [124, 22]
        ),
        "[DONE]"
      ),
      parts: [
        { type: "toolCall", id: "gSIMJiOkT", name: "weather", arguments: { location: "Paris" }, fault: null },
        finish(model, "tool-calls", 124, 22)
      ]
    }
  ],
  begin: (...texts) => dataEvents(opening, ...words(texts)),
  answer: ({ calls = [], stop, words: texts = [] }) =>
    dataEvents(
      opening,
      ...words(texts),
      chunk(
        { content: "", ...(calls.length === 0 ? {} : { tool_calls: calls.map(callOf) }) },
        stop ? ends[stop] : calls.length === 0 ? "stop" : "tool_calls",
        [11, 7]
      ),
      "[DONE]"
    ),
  cutInArguments: ({ name, pieces }) => [
    `data: {"id":"b9","object":"chat.completion.chunk","created":1,"model":"m","choices":[{"index":0,"delta":{"tool_calls":[{"id":"gSIMJiOkT","function":{"name":"${name}","arguments":${JSON.stringify(pieces.join("")).slice(0, -1)}`
  ],
  streamedError: (message) => dataEvents({ error: { message, type: "service_unavailable", code: "3505" } }),
  refusal: (status, message) =>
    status === 401
      ? { detail: message }
      : status === 429
        ? { message, request_id: "1" }
        : { object: "error", message, type: "invalid_request_error", param: null, code: "3280" },
  request: {
    model: "mistral-medium-3-5",
    stream: true,
    temperature: 0.5,
    max_tokens: 99,
    tool_choice: "auto",
    messages: [
      { role: "system", content: "You are a helpful assistant." },
      { role: "user", content: [{ type: "text", text: "Compare Paris and Rome." }] },
      {
        role: "assistant",
        content: "Looking.",
        tool_calls: [call(paris, "Paris"), call(rome, "Rome")]
      },
      { role: "tool", name: "get_weather", tool_call_id: paris, content: '{"celsius":18}' },
      { role: "tool", name: "get_weather", tool_call_id: rome, content: "No such city" },
      // Mistral refuses a user directly after a tool's result.
      { role: "assistant", content: "OK." },
      { role: "user", content: [{ type: "text", text: "<system>\nFinish now.\n</system>" }] }
    ],
    tools: [
      {
        type: "function",
        function: {
          name: "get_weather",
          description: "Get the current weather in a given location",
          parameters: { type: "object", required: ["location"] }
        }
      }
    ]
  },
  hasTextArguments: true,
  withholds: false
}
