/**
 * The parts of a model's answer that its provider wants to see again: reasoning, signatures, encrypted state.
 *
 * They are kept as they came, are sent to no other model, and nobody here reads what is in them.
 */
import { Schema } from "effect"

/** What a provider attaches to a part of an answer and wants to see again, by its name; nobody else reads it. */
const ProviderMetadata = Schema.Record(Schema.String, Schema.Record(Schema.String, Schema.Json))

/**
 * A part of an answer as its model sent it: its reasoning, a piece of the text, a tool call.
 *
 * The text and the calls are kept beside it; a part has a piece's length and a call's id.
 */
export const AnswerPart = Schema.Union([
  Schema.Struct({
    type: Schema.Literal("reasoning"),
    text: Schema.String,
    metadata: Schema.optionalKey(ProviderMetadata)
  }),
  Schema.Struct({
    type: Schema.Literal("text"),
    chars: Schema.Int,
    metadata: Schema.optionalKey(ProviderMetadata)
  }),
  Schema.Struct({
    type: Schema.Literal("toolCall"),
    id: Schema.String,
    metadata: Schema.optionalKey(ProviderMetadata)
  })
])
export type AnswerPart = typeof AnswerPart.Type
