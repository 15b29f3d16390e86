/**
 * The Responses API as OpenAI's clients send and read it.
 *
 * Names and forms are OpenAI's. A field that is not listed here is ignored; those that would change what an answer means are
 * listed, and the server refuses them by name.
 */
import { Schema } from "effect"
import { completionBounds, CompletionExtra } from "./openai-completions.ts"

/** Accepts null as absent. */
const opt = <S extends Schema.Top>(schema: S) => Schema.optional(Schema.NullOr(schema))

export const responseBounds = {
  items: completionBounds.messages,
  /** Earlier responses of which one request may name items. */
  referencedResponses: 256,
  metadataFields: 16,
  metadataValueMaxChars: 512
} as const

// Each type of part is a schema of its own, so that a refusal names the field that is wrong and not the type.

/** Words of any role; `text` is what chat completions call it. */
const textPart = <Type extends string>(type: Type) =>
  Schema.Struct({ type: Schema.Literal(type), text: Schema.String })

const RefusalPart = Schema.Struct({ type: Schema.Literal("refusal"), refusal: Schema.String })

/**
 * A picture: a `data:` URL, an address of the public network that the server fetches, or the digest of a kept attachment.
 *
 * **Details** The object and the type `image_url` are those of chat completions, which some clients send here, too.
 */
const imagePart = <Type extends string>(type: Type) =>
  Schema.Struct({
    type: Schema.Literal(type),
    image_url: opt(Schema.Union([Schema.String, Schema.Struct({ url: Schema.String })])),
    file_id: opt(Schema.String)
  })

/** A file: its bytes as a `data:` URL, an address, or the digest of a kept attachment. */
const FilePart = Schema.Struct({
  type: Schema.Literal("input_file"),
  file_data: opt(Schema.String),
  file_url: opt(Schema.String),
  file_id: opt(Schema.String),
  filename: opt(Schema.String)
})

/** Refused: no agent hears. */
const AudioPart = Schema.Struct({ type: Schema.Literal("input_audio") })

export const ResponsePart = Schema.Union([
  textPart("input_text"),
  textPart("output_text"),
  textPart("text"),
  RefusalPart,
  imagePart("input_image"),
  imagePart("image_url"),
  FilePart,
  AudioPart
])
export type ResponsePart = typeof ResponsePart.Type

export const ResponseMessage = Schema.Struct({
  type: Schema.optional(Schema.Literal("message")),
  role: Schema.Literals(["user", "assistant", "system", "developer"]),
  content: Schema.Union([Schema.String, Schema.Array(ResponsePart)])
})
export type ResponseMessage = typeof ResponseMessage.Type

/** An item of an earlier response, by its id. */
const ItemReference = Schema.Struct({
  type: opt(Schema.Literal("item_reference")),
  id: Schema.String.check(Schema.isMaxLength(200))
})

/** What an agent did, as an earlier response has it, is passed over; calls and results of other tools are refused. */
const OtherItem = Schema.Struct({
  type: Schema.String.check(Schema.isPattern(/^(?!message$|item_reference$)/), Schema.isMaxLength(200))
})

export const ResponseInputItem = Schema.Union([ResponseMessage, ItemReference, OtherItem])
export type ResponseInputItem = typeof ResponseInputItem.Type

/** Values are text, as OpenAI's are. */
const Metadata = Schema.Record(
  Schema.String.check(Schema.isMaxLength(64)),
  Schema.String.check(Schema.isMaxLength(responseBounds.metadataValueMaxChars))
).check(Schema.isMaxProperties(responseBounds.metadataFields))

export const ResponseInput = Schema.Struct({
  /** The agent's name, or its id. */
  model: Schema.String.check(Schema.isBetweenLength(1, 200)),
  input: Schema.Union([
    Schema.String,
    Schema.Array(ResponseInputItem).check(Schema.isBetweenLength(1, responseBounds.items))
  ]),
  /** What the agent is told to be for this response, after its own system prompt. */
  instructions: opt(Schema.String),
  /** The response after which this one goes on, in the same conversation. */
  previous_response_id: opt(Schema.String),
  /** The name of a conversation, as an answer's header x-tropism-conversation has it. */
  conversation: opt(Schema.Union([Schema.String, Schema.Struct({ id: Schema.String })])),
  stream: opt(Schema.Boolean),
  /** Answers at once; the response is read by its id. */
  background: opt(Schema.Boolean),
  /** False: the id of the response names nothing. */
  store: opt(Schema.Boolean),
  temperature: opt(Schema.Finite.check(Schema.isBetween({ minimum: 0, maximum: 2 }))),
  max_output_tokens: opt(
    Schema.Int.check(
      Schema.makeFilter((value: number) => value >= 1 || value === -1, {
        expected: "a whole number from 1, or -1 for no limit"
      })
    )
  ),
  metadata: opt(Metadata),
  tools: opt(Schema.Json),
  tool_choice: opt(Schema.Json),
  text: opt(Schema.Struct({ format: opt(Schema.Json) })),
  top_logprobs: opt(Schema.Json),
  max_tool_calls: opt(Schema.Json),
  prompt: opt(Schema.Json)
}).annotate({ identifier: "ResponseInput" })
export type ResponseInput = typeof ResponseInput.Type

const ItemStatus = Schema.Literals(["in_progress", "completed", "incomplete", "failed"])

const OutputText = Schema.Struct({
  type: Schema.Literal("output_text"),
  text: Schema.String,
  annotations: Schema.Array(Schema.Json),
  logprobs: Schema.Array(Schema.Json)
})

const OutputMessage = Schema.Struct({
  type: Schema.Literal("message"),
  id: Schema.String,
  role: Schema.Literal("assistant"),
  status: ItemStatus,
  content: Schema.Array(OutputText)
})

/** A call of a tool of the agent; the server has made it. */
const OutputCall = Schema.Struct({
  type: Schema.Literal("mcp_call"),
  id: Schema.String,
  name: Schema.String,
  server_label: Schema.Literal("tropism"),
  /** JSON. */
  arguments: Schema.String,
  /** JSON; null while there is none, and where the call failed. */
  output: Schema.NullOr(Schema.String),
  error: Schema.NullOr(
    Schema.Struct({ type: Schema.Literal("mcp_tool_execution_error"), content: Schema.Json })
  ),
  approval_request_id: Schema.Null,
  status: ItemStatus
})

export const ResponseOutputItem = Schema.Union([OutputMessage, OutputCall])
export type ResponseOutputItem = typeof ResponseOutputItem.Type

/** `incomplete`: a limit or a person came first. A response in the background, or one that is read, may be `in_progress`. */
export const ResponseStatus = Schema.Literals([
  "completed",
  "failed",
  "in_progress",
  "cancelled",
  "incomplete"
])
export type ResponseStatus = typeof ResponseStatus.Type

export const AgentResponse = Schema.Struct({
  id: Schema.String,
  object: Schema.Literal("response"),
  created_at: Schema.Int,
  status: ResponseStatus,
  error: Schema.NullOr(Schema.Struct({ code: Schema.Literal("server_error"), message: Schema.String })),
  incomplete_details: Schema.NullOr(
    Schema.Struct({ reason: Schema.Literals(["max_output_tokens", "content_filter"]) })
  ),
  background: Schema.Boolean,
  conversation: Schema.NullOr(Schema.Struct({ id: Schema.String })),
  instructions: Schema.NullOr(Schema.String),
  max_output_tokens: Schema.NullOr(Schema.Int),
  metadata: Schema.Record(Schema.String, Schema.String),
  model: Schema.String,
  output: Schema.Array(ResponseOutputItem),
  parallel_tool_calls: Schema.Boolean,
  previous_response_id: Schema.NullOr(Schema.String),
  store: Schema.Boolean,
  temperature: Schema.NullOr(Schema.Finite),
  text: Schema.Struct({ format: Schema.Struct({ type: Schema.Literal("text") }) }),
  tool_choice: Schema.Literals(["auto", "none"]),
  tools: Schema.Array(Schema.Json),
  top_p: Schema.Null,
  truncation: Schema.Literal("disabled"),
  usage: Schema.Struct({
    input_tokens: Schema.Int,
    input_tokens_details: Schema.Struct({ cached_tokens: Schema.Int, cache_write_tokens: Schema.Int }),
    output_tokens: Schema.Int,
    output_tokens_details: Schema.Struct({ reasoning_tokens: Schema.Int }),
    total_tokens: Schema.Int
  }),
  /** Beside what OpenAI's clients know. */
  x_tropism: CompletionExtra.mapFields(({ conversation, run_id, status }) => ({
    conversation,
    run_id,
    status
  }))
}).annotate({ identifier: "AgentResponse" })
export type AgentResponse = typeof AgentResponse.Type

export const DeletedResponse = Schema.Struct({
  id: Schema.String,
  object: Schema.Literal("response"),
  deleted: Schema.Literal(true)
}).annotate({ identifier: "DeletedResponse" })
