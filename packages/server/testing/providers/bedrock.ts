/**
 * Amazon Bedrock's ConverseStream, framed as AWS frames its event streams.
 *
 * The frame is that of AWS's specification (`vnd.amazon.eventstream`: lengths,
 * headers and payload under two CRC-32 sums). The events are those of the API
 * reference of `ConverseStream`; the answers have the shape of the stream of
 * `amazon-bedrock-text.chunks.txt` in the tests of vercel/ai, shortened.
 * Refusals are `{"message"}` with the exception's name in a header.
 */
import { crc32 } from "node:zlib"
import type { ModelConfig } from "@tropism/domain/model-config"
import { finish, type Piece, type StreamedCall, type WireFormat } from "./wire-format.ts"

const model: ModelConfig = {
  provider: "amazon-bedrock",
  name: "us.anthropic.claude-haiku-4-5-20251001-v1:0",
  temperature: 0.5,
  maxOutputTokens: 99
}

const header = (name: string, value: string): Buffer => {
  const length = Buffer.alloc(2)
  length.writeUInt16BE(Buffer.byteLength(value))
  // 7 is the type of a text.
  return Buffer.concat([
    Buffer.from([Buffer.byteLength(name)]),
    Buffer.from(name),
    Buffer.from([7]),
    length,
    Buffer.from(value)
  ])
}

const uint32 = (value: number): Buffer => {
  const bytes = Buffer.alloc(4)
  bytes.writeUInt32BE(value)
  return bytes
}

const frame = (headers: ReadonlyArray<readonly [string, string]>, body: unknown): Buffer => {
  const head = Buffer.concat(headers.map(([name, value]) => header(name, value)))
  const payload = Buffer.from(JSON.stringify(body))
  const lengths = Buffer.concat([uint32(16 + head.length + payload.length), uint32(head.length)])
  const summed = Buffer.concat([lengths, uint32(crc32(lengths)), head, payload])
  return Buffer.concat([summed, uint32(crc32(summed))])
}

/** One event of a stream. */
export const event = (type: string, body: object): Buffer =>
  frame(
    [
      [":event-type", type],
      [":content-type", "application/json"],
      [":message-type", "event"]
    ],
    // AWS pads each event, so that its length says nothing.
    { ...body, p: "abcdefghijk" }
  )

const exception = (type: string, message: string): Buffer =>
  frame(
    [
      [":exception-type", type],
      [":content-type", "application/json"],
      [":message-type", "exception"]
    ],
    { message }
  )

const opening = event("messageStart", { role: "assistant" })

const words = (texts: ReadonlyArray<string>) =>
  texts.map((text) => event("contentBlockDelta", { contentBlockIndex: 0, delta: { text } }))

const blockStop = (index: number) => event("contentBlockStop", { contentBlockIndex: index })

const callStart = ({ id, name, pieces }: StreamedCall, index: number) => [
  event("contentBlockStart", { contentBlockIndex: index, start: { toolUse: { toolUseId: id, name } } }),
  ...pieces.map((input) =>
    event("contentBlockDelta", { contentBlockIndex: index, delta: { toolUse: { input } } })
  )
]

const stopped = (stopReason: string, inputTokens: number, outputTokens: number): ReadonlyArray<Piece> => [
  event("messageStop", { stopReason }),
  event("metadata", {
    metrics: { latencyMs: 1 },
    usage: { inputTokens, outputTokens, totalTokens: inputTokens + outputTokens }
  })
]

const ends = { length: "max_tokens", filter: "content_filtered" } as const

const result = (toolUseId: string, text: string) => ({ toolResult: { toolUseId, content: [{ text }] } })

export const bedrock: WireFormat = {
  title: "Bedrock ConverseStream",
  model,
  env: (url, key) => ({
    AWS_BEARER_TOKEN_BEDROCK: key,
    AWS_REGION: "us-east-1",
    AWS_ENDPOINT_URL_BEDROCK_RUNTIME: url
  }),
  path: "/model/us.anthropic.claude-haiku-4-5-20251001-v1%3A0/converse-stream",
  keyHeader: "authorization",
  published: [
    {
      what: "text",
      chunks: [opening, ...words(["Hello", "!"]), blockStop(0), ...stopped("end_turn", 25, 15)],
      parts: [{ type: "text", delta: "Hello" }, { type: "text", delta: "!" }, finish(model, "stop", 25, 15)]
    },
    {
      what: "a tool call",
      chunks: [
        opening,
        ...callStart(
          { id: "tooluse_kZJMlvQmRJ6eAyJE5GIl7Q", name: "top_song", pieces: ['{"sign":', ' "WZPZ"}'] },
          0
        ),
        blockStop(0),
        ...stopped("tool_use", 377, 46)
      ],
      parts: [
        {
          type: "toolCall",
          id: "tooluse_kZJMlvQmRJ6eAyJE5GIl7Q",
          name: "top_song",
          arguments: { sign: "WZPZ" },
          fault: null
        },
        finish(model, "tool-calls", 377, 46)
      ]
    }
  ],
  begin: (...texts) => [opening, ...words(texts)],
  answer: ({ calls = [], stop, words: texts = [] }) => [
    opening,
    ...words(texts),
    ...(texts.length === 0 ? [] : [blockStop(0)]),
    ...calls.flatMap((call, index) => [...callStart(call, index + 1), blockStop(index + 1)]),
    ...stopped(stop ? ends[stop] : calls.length === 0 ? "end_turn" : "tool_use", 11, 7)
  ],
  cutInArguments: (call) => [opening, ...callStart(call, 0)],
  streamedError: (message) => [exception("serviceUnavailableException", message)],
  refusal: (_status, message) => ({ message }),
  request: {
    system: [{ text: "You are a helpful assistant." }],
    inferenceConfig: { temperature: 0.5, maxTokens: 99 },
    messages: [
      { role: "user", content: [{ text: "Compare Paris and Rome." }] },
      {
        role: "assistant",
        content: [
          { text: "Looking." },
          { toolUse: { toolUseId: "call_paris", name: "get_weather", input: { location: "Paris" } } },
          { toolUse: { toolUseId: "call_rome", name: "get_weather", input: { location: "Rome" } } }
        ]
      },
      {
        role: "user",
        content: [
          result("call_paris", '{"celsius":18}'),
          result("call_rome", "No such city"),
          { text: "<system>\nFinish now.\n</system>" }
        ]
      }
    ],
    toolConfig: {
      tools: [
        {
          toolSpec: {
            name: "get_weather",
            description: "Get the current weather in a given location",
            inputSchema: { json: { type: "object", required: ["location"] } }
          }
        }
      ],
      toolChoice: { auto: {} }
    }
  },
  hasTextArguments: true
}
