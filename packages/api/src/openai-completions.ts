/**
 * Chat completions as OpenAI's clients send and read them.
 *
 * Names and forms are OpenAI's. A field that is not listed here is ignored, as its
 * servers ignore what they do not know; those that would change what an answer means
 * are listed, and the server says why it cannot keep to them.
 */
import { ChatStatus, ChatToolCall } from "@tropism/domain/conversation"
import { Schema } from "effect"

/** Accepts null as absent. */
const opt = <S extends Schema.Top>(schema: S) => Schema.optional(Schema.NullOr(schema))

export const completionBounds = {
  /** A history with its files in base64; what is text of it counts as well. */
  bodyMaxBytes: 16_777_216,
  messages: 4_096,
  /** Files of one request, the same file counted once. */
  files: 32,
  /** Of one message of a user, and of all that the client tells the agent to be. */
  messageMaxChars: 1_000_000,
  maxTokens: 1_000_000
} as const

const TextPart = Schema.Struct({ type: Schema.Literal("text"), text: Schema.String })

/** A picture: a `data:` URL, or an address of the public network that the server fetches. Some clients send the URL alone. */
const ImagePart = Schema.Struct({
  type: Schema.Literal("image_url"),
  image_url: Schema.Union([Schema.String, Schema.Struct({ url: Schema.String })])
})

/** A file: its bytes as a `data:` URL, or the digest of one that was sent to `/attachments`. */
const FilePart = Schema.Struct({
  type: Schema.Literal("file"),
  file: Schema.Struct({
    file_data: opt(Schema.String),
    file_id: opt(Schema.String),
    filename: opt(Schema.String)
  })
})

/** Refused: no agent hears. */
const AudioPart = Schema.Struct({ type: Schema.Literal("input_audio") })

const Words = Schema.Union([Schema.String, Schema.Array(TextPart)])

const RefusalPart = Schema.Struct({ type: Schema.Literal("refusal"), refusal: Schema.String })

export const CompletionPart = Schema.Union([TextPart, ImagePart, FilePart, AudioPart])
export type CompletionPart = typeof CompletionPart.Type

export const CompletionMessage = Schema.Union([
  Schema.Struct({ role: Schema.Literal("system"), content: Words }),
  Schema.Struct({ role: Schema.Literal("developer"), content: Words }),
  Schema.Struct({
    role: Schema.Literal("user"),
    content: Schema.Union([Schema.String, Schema.Array(CompletionPart)])
  }),
  Schema.Struct({
    role: Schema.Literal("assistant"),
    content: opt(Schema.Union([Schema.String, Schema.Array(Schema.Union([TextPart, RefusalPart]))])),
    tool_calls: opt(Schema.Array(Schema.Json))
  }),
  /** Refused: an agent's tools are its own. */
  Schema.Struct({ role: Schema.Literal("tool") }),
  Schema.Struct({ role: Schema.Literal("function") })
])
export type CompletionMessage = typeof CompletionMessage.Type

/** Clients of local servers send -1 or -2 for no limit. */
const tokens = opt(
  Schema.Int.check(
    Schema.makeFilter((value: number) => value >= 1 || value === -1 || value === -2, {
      expected: "a whole number from 1, or -1 for no limit"
    })
  )
)

export const CompletionInput = Schema.Struct({
  /** The agent's name, or its id. */
  model: Schema.String.check(Schema.isBetweenLength(1, 200)),
  messages: Schema.Array(CompletionMessage).check(Schema.isBetweenLength(1, completionBounds.messages)),
  stream: opt(Schema.Boolean),
  stream_options: opt(Schema.Struct({ include_usage: opt(Schema.Boolean) })),
  temperature: opt(Schema.Finite.check(Schema.isBetween({ minimum: 0, maximum: 2 }))),
  max_completion_tokens: tokens,
  max_tokens: tokens,
  /** `conversation_id` goes on in a conversation, as the header x-tropism-conversation does. */
  metadata: opt(Schema.Record(Schema.String, Schema.Json)),
  /** Only 1. */
  n: opt(Schema.Json),
  tools: opt(Schema.Json),
  tool_choice: opt(Schema.Json),
  functions: opt(Schema.Json),
  function_call: opt(Schema.Json),
  response_format: opt(Schema.Json),
  logprobs: opt(Schema.Json),
  top_logprobs: opt(Schema.Json),
  modalities: opt(Schema.Json),
  audio: opt(Schema.Json),
  stop: opt(Schema.Json),
  web_search_options: opt(Schema.Json)
}).annotate({ identifier: "ChatCompletionInput" })
export type CompletionInput = typeof CompletionInput.Type

export const CompletionUsage = Schema.Struct({
  prompt_tokens: Schema.Int,
  prompt_tokens_details: Schema.Struct({ cached_tokens: Schema.Int }),
  completion_tokens: Schema.Int,
  completion_tokens_details: Schema.Struct({ reasoning_tokens: Schema.Int }),
  total_tokens: Schema.Int
})
export type CompletionUsage = typeof CompletionUsage.Type

/** What an agent's answer is beside its words; clients pass over it. */
export const CompletionExtra = Schema.Struct({
  /** Where to go on: the value of the header x-tropism-conversation. */
  conversation: Schema.String,
  status: ChatStatus,
  run_id: Schema.NullOr(Schema.String),
  /** What the agent did with its own tools; it is done already. */
  tool_calls: Schema.Array(ChatToolCall)
})
export type CompletionExtra = typeof CompletionExtra.Type

/** `length`: a limit of the run, or of the time that a request waits, or the model's limit of output tokens, was reached before the agent was done. `content_filter`: the filter of the model's provider stopped the answer. */
export const FinishReason = Schema.Literals(["stop", "length", "content_filter"])
export type FinishReason = typeof FinishReason.Type

const shared = {
  id: Schema.String,
  created: Schema.Int,
  model: Schema.String
}

export const Completion = Schema.Struct({
  ...shared,
  object: Schema.Literal("chat.completion"),
  choices: Schema.Array(
    Schema.Struct({
      index: Schema.Int,
      message: Schema.Struct({
        role: Schema.Literal("assistant"),
        content: Schema.String,
        refusal: Schema.Null
      }),
      logprobs: Schema.Null,
      finish_reason: FinishReason
    })
  ),
  usage: CompletionUsage,
  x_tropism: CompletionExtra
}).annotate({ identifier: "ChatCompletion" })
export type Completion = typeof Completion.Type

/** One `data:` line of a streamed answer; the last is `[DONE]`. */
export const CompletionChunk = Schema.Struct({
  ...shared,
  object: Schema.Literal("chat.completion.chunk"),
  choices: Schema.Array(
    Schema.Struct({
      index: Schema.Int,
      delta: Schema.Struct({
        role: Schema.optionalKey(Schema.Literal("assistant")),
        content: Schema.optionalKey(Schema.String)
      }),
      logprobs: Schema.Null,
      finish_reason: Schema.NullOr(FinishReason)
    })
  ),
  usage: Schema.optionalKey(Schema.NullOr(CompletionUsage)),
  x_tropism: Schema.optionalKey(CompletionExtra)
}).annotate({ identifier: "ChatCompletionChunk" })
export type CompletionChunk = typeof CompletionChunk.Type
