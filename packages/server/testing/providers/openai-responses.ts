/**
 * OpenAI's Responses API.
 *
 * Published examples: the streaming example of OpenAI's API reference
 * (`resp_67c9fdcecf488190bdd9a0409de3a1ec07b8b0ad4e5eb654`) and the one of its
 * guide to function calling (`fc_1234xyz`); the error is one that OpenAI sent,
 * recorded in the tests of vercel/ai (`openai-error.1.chunks.txt`). All shortened.
 */
import type { ModelConfig } from "@tropism/domain/model-config"
import { finish, type StreamedCall, typedEvents, type WireFormat } from "./wire-format.ts"

const model: ModelConfig = { provider: "openai", name: "gpt-4o", temperature: 0.5, maxOutputTokens: 99 }

type Event = { readonly type: string; readonly [field: string]: unknown }

/** OpenAI numbers the events of a stream. */
const numbered = (...events: ReadonlyArray<Event>) =>
  typedEvents(...events.map((event, index) => ({ ...event, sequence_number: index })))

const responseId = "resp_67c9fdcecf488190bdd9a0409de3a1ec07b8b0ad4e5eb654"

const response = (status: string, more: Record<string, unknown> = {}) => ({
  id: responseId,
  object: "response",
  created_at: 1741290958,
  status,
  error: null,
  incomplete_details: null,
  model: "gpt-4o-2024-08-06",
  output: [],
  parallel_tool_calls: true,
  previous_response_id: null,
  store: false,
  tools: [],
  usage: null,
  metadata: {},
  ...more
})

const opening: ReadonlyArray<Event> = [
  { type: "response.created", response: response("in_progress") },
  { type: "response.in_progress", response: response("in_progress") }
]

const messageId = "msg_67c9fdcf37fc8190ba82116e33fb28c507b8b0ad4e5eb654"
const part = (text: string) => ({ type: "output_text", text, annotations: [] })
const message = (status: string, content: ReadonlyArray<unknown>) => ({
  id: messageId,
  type: "message",
  status,
  role: "assistant",
  content
})
const inMessage = { item_id: messageId, output_index: 0, content_index: 0 }

const messageStart: ReadonlyArray<Event> = [
  { type: "response.output_item.added", output_index: 0, item: message("in_progress", []) },
  { type: "response.content_part.added", ...inMessage, part: part("") }
]
const deltas = (texts: ReadonlyArray<string>): ReadonlyArray<Event> =>
  texts.map((delta) => ({ type: "response.output_text.delta", ...inMessage, delta }))
const messageEnd = (text: string): ReadonlyArray<Event> => [
  { type: "response.output_text.done", ...inMessage, text },
  { type: "response.content_part.done", ...inMessage, part: part(text) },
  { type: "response.output_item.done", output_index: 0, item: message("completed", [part(text)]) }
]

const callItem = ({ id, name }: StreamedCall, argumentsText: string, status: string) => ({
  type: "function_call",
  id: `fc_${id}`,
  call_id: id,
  name,
  arguments: argumentsText,
  status
})
const callStart = (call: StreamedCall, index: number): ReadonlyArray<Event> => [
  { type: "response.output_item.added", output_index: index, item: callItem(call, "", "in_progress") },
  ...call.pieces.map((delta) => ({
    type: "response.function_call_arguments.delta",
    item_id: `fc_${call.id}`,
    output_index: index,
    delta
  }))
]
const callEnd = (call: StreamedCall, index: number): ReadonlyArray<Event> => {
  const whole = call.pieces.join("")
  return [
    {
      type: "response.function_call_arguments.done",
      item_id: `fc_${call.id}`,
      output_index: index,
      arguments: whole
    },
    { type: "response.output_item.done", output_index: index, item: callItem(call, whole, "completed") }
  ]
}

const usage = (input: number, output: number) => ({
  input_tokens: input,
  input_tokens_details: { cached_tokens: 0 },
  output_tokens: output,
  output_tokens_details: { reasoning_tokens: 0 },
  total_tokens: input + output
})

const completed = (input: number, output: number): Event => ({
  type: "response.completed",
  response: response("completed", { usage: usage(input, output) })
})
const incomplete = (reason: string): Event => ({
  type: "response.incomplete",
  response: response("incomplete", { incomplete_details: { reason }, usage: usage(11, 7) })
})
const ends = { length: "max_output_tokens", filter: "content_filter" } as const

const paris: StreamedCall = {
  id: "call_1234xyz",
  name: "get_weather",
  pieces: ['{"', "location", '":"', "Paris", ",", " France", '"}']
}

/** The package of Azure has no form of its own for a failed call. */
const requestOf = (name: string, failure: string) => ({
  model: name,
  stream: true,
  store: false,
  temperature: 0.5,
  max_output_tokens: 99,
  tool_choice: "auto",
  input: [
    { role: "system", content: "You are a helpful assistant." },
    { role: "user", content: [{ type: "input_text", text: "Compare Paris and Rome." }] },
    { role: "assistant", content: "Looking." },
    {
      type: "function_call",
      call_id: "call_paris",
      name: "get_weather",
      arguments: '{"location":"Paris"}'
    },
    { type: "function_call", call_id: "call_rome", name: "get_weather", arguments: '{"location":"Rome"}' },
    { type: "function_call_output", call_id: "call_paris", output: '{"celsius":18}' },
    { type: "function_call_output", call_id: "call_rome", output: failure },
    { role: "system", content: "Finish now." }
  ],
  tools: [
    {
      type: "function",
      name: "get_weather",
      description: "Get the current weather in a given location",
      // Strict would make every optional argument a required one.
      strict: false,
      parameters: { type: "object", required: ["location"] }
    }
  ]
})

export const openaiResponses: WireFormat & { readonly exhausted: ReadonlyArray<string> } = {
  title: "OpenAI responses",
  model,
  env: (url, key) => ({
    OPENAI_API_KEY: key,
    OPENAI_BASE_URL: `${url}/v1`,
    TROPISM_OPENAI_API: "responses"
  }),
  path: "/v1/responses",
  keyHeader: "authorization",
  published: [
    {
      what: "text",
      chunks: numbered(
        ...opening,
        ...messageStart,
        ...deltas(["Hi", " there!", " How can I assist you today?"]),
        ...messageEnd("Hi there! How can I assist you today?"),
        completed(37, 11)
      ),
      parts: [
        { type: "text", delta: "Hi" },
        { type: "text", delta: " there!" },
        { type: "text", delta: " How can I assist you today?" },
        finish(model, "stop", 37, 11)
      ]
    },
    {
      what: "a tool call",
      chunks: numbered(...opening, ...callStart(paris, 0), ...callEnd(paris, 0), completed(45, 25)),
      parts: [
        {
          type: "toolCall",
          id: "call_1234xyz",
          name: "get_weather",
          arguments: { location: "Paris, France" },
          fault: null
        },
        finish(model, "tool-calls", 45, 25)
      ]
    }
  ],
  begin: (...texts) => numbered(...opening, ...messageStart, ...deltas(texts)),
  answer: ({ calls = [], stop, words = [] }) =>
    numbered(
      ...opening,
      ...(words.length === 0 ? [] : [...messageStart, ...deltas(words), ...messageEnd(words.join(""))]),
      ...calls.flatMap((call, index) => [...callStart(call, index + 1), ...callEnd(call, index + 1)]),
      stop ? incomplete(ends[stop]) : completed(11, 7)
    ),
  cutInArguments: (call) => numbered(...opening, ...callStart(call, 0)),
  streamedError: (message) => {
    const error = { type: "server_error", code: "server_error", message, param: null }
    return numbered(
      ...opening,
      { type: "error", error },
      { type: "response.failed", response: response("failed", { error: { code: error.code, message } }) }
    )
  },
  exhausted: numbered(...opening, {
    type: "error",
    error: {
      type: "insufficient_quota",
      code: "insufficient_quota",
      message: "You exceeded your current quota, please check your plan and billing details.",
      param: null
    }
  }),
  refusal: (_status, message) => ({
    error: { message, type: "invalid_request_error", param: null, code: null }
  }),
  request: requestOf("gpt-4o", '{"error":"No such city"}'),
  hasTextArguments: true
}

const deployment: ModelConfig = { ...model, provider: "azure", name: "our-deployment" }

/** Azure's v1 API speaks it too; it is what Azure is asked in unless the operator says otherwise. */
export const azureResponses: WireFormat = {
  ...openaiResponses,
  title: "Azure responses",
  model: deployment,
  env: (url, key) => ({ AZURE_API_KEY: key, AZURE_BASE_URL: `${url}/openai/v1` }),
  path: "/openai/v1/responses",
  keyHeader: "api-key",
  published: openaiResponses.published.map((answer) => ({
    ...answer,
    parts: answer.parts.map((part) =>
      Object(part).type === "finish"
        ? { ...Object(part), provider: deployment.provider, name: deployment.name }
        : part
    )
  })),
  request: requestOf("our-deployment", "No such city")
}
