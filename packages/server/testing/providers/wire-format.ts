/**
 * What a provider sends and wants on the wire, in the words that its tests share.
 *
 * Each file beside this one speaks one real format: the provider's published
 * examples, and the same shapes with other words for what no example shows.
 */
import type { ModelConfig } from "@tropism/domain/model-config"
import type { ModelRequest } from "../../src/models/model-request.ts"

/** A tool call as a model streams it: its arguments in pieces. */
export interface StreamedCall {
  readonly id: string
  readonly name: string
  readonly pieces: ReadonlyArray<string>
}

/** A piece of a body: text, or bytes where the provider does not send text. */
export type Piece = string | Uint8Array

/** An answer that a provider published, and what it says. */
export interface PublishedAnswer {
  readonly what: string
  readonly chunks: ReadonlyArray<Piece>
  readonly parts: ReadonlyArray<unknown>
}

export interface WireFormat {
  readonly title: string
  readonly model: ModelConfig
  /** The environment of a server that asks the provider at this address. */
  readonly env: (url: string, key: string) => Record<string, string>
  readonly path: string
  readonly keyHeader: string
  readonly published: ReadonlyArray<PublishedAnswer>
  /** The opening of an answer and its words, without an end. */
  readonly begin: (...words: ReadonlyArray<string>) => ReadonlyArray<Piece>
  /** A whole answer: words, then calls; `length` stops it for its length. */
  readonly answer: (content: {
    readonly words?: ReadonlyArray<string>
    readonly calls?: ReadonlyArray<StreamedCall>
    readonly stop?: "length" | "filter"
  }) => ReadonlyArray<Piece>
  /** An answer that is cut in the middle of a call's arguments. */
  readonly cutInArguments: (call: StreamedCall) => ReadonlyArray<Piece>
  /** An error that comes inside a stream that began with 200. */
  readonly streamedError: (message: string) => ReadonlyArray<Piece>
  /** The body of a refusal. */
  readonly refusal: (status: number, message: string) => unknown
  /** What the provider must be sent for `conversation`. */
  readonly request: object
  /** Whether calls carry arguments as text, which can be broken; the others send JSON. */
  readonly hasTextArguments: boolean
  /** Whether it can withhold an answer; absent is yes. */
  readonly withholds?: boolean
}

/** Server-sent events with `data` only. */
export const dataEvents = (...values: ReadonlyArray<unknown>): ReadonlyArray<string> =>
  values.map((value) => `data: ${typeof value === "string" ? value : JSON.stringify(value)}\n\n`)

/** Server-sent events that are named after the `type` of what they carry. */
export const typedEvents = (
  ...values: ReadonlyArray<{ readonly type: string; readonly [field: string]: unknown }>
): ReadonlyArray<string> => values.map((value) => `event: ${value.type}\ndata: ${JSON.stringify(value)}\n\n`)

/** A conversation with everything in it that a provider may want in its own way. */
export const conversation: ModelRequest = {
  tools: [
    {
      name: "get_weather",
      description: "Get the current weather in a given location",
      inputSchema: {
        type: "object",
        properties: { location: { type: "string" }, unit: { type: "string" } },
        required: ["location"]
      }
    }
  ],
  messages: [
    { role: "system", content: "You are a helpful assistant." },
    { role: "user", content: "Compare Paris and Rome." },
    {
      role: "assistant",
      content: [
        { type: "text", text: "Looking." },
        { type: "tool-call", id: "call_paris", name: "get_weather", params: { location: "Paris" } },
        { type: "tool-call", id: "call_rome", name: "get_weather", params: { location: "Rome" } }
      ]
    },
    {
      role: "tool",
      content: [
        {
          type: "tool-result",
          id: "call_paris",
          name: "get_weather",
          isFailure: false,
          result: { celsius: 18 }
        }
      ]
    },
    {
      role: "tool",
      content: [
        { type: "tool-result", id: "call_rome", name: "get_weather", isFailure: true, result: "No such city" }
      ]
    },
    { role: "system", content: "Finish now." }
  ]
}

/** The finish that every answer ends with. */
export const finish = (
  { name, provider }: ModelConfig,
  reason: string,
  inputTokens: number,
  outputTokens: number
) => ({
  type: "finish",
  reason,
  usage: { inputTokens, outputTokens },
  isUsageEstimated: false,
  provider,
  name
})
