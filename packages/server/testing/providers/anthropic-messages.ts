/**
 * Anthropic's Messages API.
 *
 * Published examples: "Basic streaming request" and "Streaming request with tool
 * use" of Anthropic's page on streaming messages
 * (`msg_1nZdL29xx5MUA1yADyHTEsnR8uuvGzszyY`, `msg_014p7gG3wDgGV9EUtLvnow3U`),
 * the second with fewer words, and its example of an error event.
 */
import type { ModelConfig } from "@tropism/domain/model-config"
import { finish, type StreamedCall, typedEvents, type WireFormat } from "./wire-format.ts"

const model: ModelConfig = {
  provider: "anthropic",
  name: "claude-sonnet-4-5",
  temperature: 0.5,
  maxOutputTokens: 99
}

type Event = { readonly type: string; readonly [field: string]: unknown }

const start = (inputTokens: number, outputTokens: number): Event => ({
  type: "message_start",
  message: {
    id: "msg_1nZdL29xx5MUA1yADyHTEsnR8uuvGzszyY",
    type: "message",
    role: "assistant",
    content: [],
    model: "claude-sonnet-4-5-20250929",
    stop_reason: null,
    stop_sequence: null,
    usage: { input_tokens: inputTokens, output_tokens: outputTokens }
  }
})

const textStart: Event = { type: "content_block_start", index: 0, content_block: { type: "text", text: "" } }
const ping: Event = { type: "ping" }
const textDelta = (text: string): Event => ({
  type: "content_block_delta",
  index: 0,
  delta: { type: "text_delta", text }
})
const blockStop = (index: number): Event => ({ type: "content_block_stop", index })
const stopped = (reason: string, outputTokens: number): ReadonlyArray<Event> => [
  {
    type: "message_delta",
    delta: { stop_reason: reason, stop_sequence: null },
    usage: { output_tokens: outputTokens }
  },
  { type: "message_stop" }
]

const callStart = ({ id, name, pieces }: StreamedCall, index: number): ReadonlyArray<Event> => [
  { type: "content_block_start", index, content_block: { type: "tool_use", id, name, input: {} } },
  ...["", ...pieces].map((piece) => ({
    type: "content_block_delta",
    index,
    delta: { type: "input_json_delta", partial_json: piece }
  }))
]

const text = (texts: ReadonlyArray<string>): ReadonlyArray<Event> =>
  texts.length === 0 ? [] : [textStart, ping, ...texts.map(textDelta), blockStop(0)]

const ends = { length: "max_tokens", filter: "refusal" } as const

const sanFrancisco: StreamedCall = {
  id: "toolu_01T1x1fJ34qAmk2tNTrN7Up6",
  name: "get_weather",
  pieces: ['{"location":', ' "San', " Francisc", "o,", ' CA"', ", ", '"unit": "fah', 'renheit"}']
}

export const anthropicMessages: WireFormat = {
  title: "Anthropic messages",
  model,
  env: (url, key) => ({ ANTHROPIC_API_KEY: key, ANTHROPIC_BASE_URL: `${url}/v1` }),
  path: "/v1/messages",
  keyHeader: "x-api-key",
  published: [
    {
      what: "text",
      chunks: typedEvents(start(25, 1), ...text(["Hello", "!"]), ...stopped("end_turn", 15)),
      parts: [{ type: "text", delta: "Hello" }, { type: "text", delta: "!" }, finish(model, "stop", 25, 15)]
    },
    {
      what: "text and a tool call",
      chunks: typedEvents(
        start(472, 2),
        ...text(["Okay", ",", " let's check the weather for San Francisco, CA:"]),
        ...callStart(sanFrancisco, 1),
        blockStop(1),
        ...stopped("tool_use", 89)
      ),
      parts: [
        { type: "text", delta: "Okay" },
        { type: "text", delta: "," },
        { type: "text", delta: " let's check the weather for San Francisco, CA:" },
        {
          type: "toolCall",
          id: "toolu_01T1x1fJ34qAmk2tNTrN7Up6",
          name: "get_weather",
          arguments: { location: "San Francisco, CA", unit: "fahrenheit" },
          fault: null
        },
        finish(model, "tool-calls", 472, 89)
      ]
    }
  ],
  begin: (...texts) => typedEvents(start(11, 1), textStart, ping, ...texts.map(textDelta)),
  answer: ({ calls = [], stop, words = [] }) =>
    typedEvents(
      start(11, 1),
      ...text(words),
      ...calls.flatMap((call, index) => [...callStart(call, index + 1), blockStop(index + 1)]),
      ...stopped(stop ? ends[stop] : calls.length === 0 ? "end_turn" : "tool_use", 7)
    ),
  cutInArguments: (call) => typedEvents(start(11, 1), ...callStart(call, 0)),
  streamedError: (message) => typedEvents({ type: "error", error: { type: "overloaded_error", message } }),
  refusal: (_status, message) => ({ type: "error", error: { type: "api_error", message } }),
  request: {
    model: "claude-sonnet-4-5",
    stream: true,
    temperature: 0.5,
    max_tokens: 99,
    tool_choice: { type: "auto" },
    system: [{ type: "text", text: "You are a helpful assistant." }],
    messages: [
      { role: "user", content: [{ type: "text", text: "Compare Paris and Rome." }] },
      {
        role: "assistant",
        content: [
          { type: "text", text: "Looking." },
          { type: "tool_use", id: "call_paris", name: "get_weather", input: { location: "Paris" } },
          { type: "tool_use", id: "call_rome", name: "get_weather", input: { location: "Rome" } }
        ]
      },
      {
        role: "user",
        // Anthropic refuses a call whose result does not come in the very next message.
        content: [
          { type: "tool_result", tool_use_id: "call_paris", content: '{"celsius":18}' },
          { type: "tool_result", tool_use_id: "call_rome", content: "No such city", is_error: true },
          { type: "text", text: "<system>\nFinish now.\n</system>" }
        ]
      }
    ],
    tools: [
      {
        name: "get_weather",
        description: "Get the current weather in a given location",
        input_schema: { type: "object", required: ["location"] }
      }
    ]
  },
  hasTextArguments: true
}
