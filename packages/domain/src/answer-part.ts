/**
 * Parts of a model's answer that its provider requires in later requests: reasoning, signatures, encrypted state.
 *
 * They are stored unchanged and sent only to the model that produced them. Their content is opaque to Tropism.
 */
import { Schema } from "effect"

/** Opaque provider metadata of an answer part, keyed by provider. */
const ProviderMetadata = Schema.Record(Schema.String, Schema.Record(Schema.String, Schema.Json))

/**
 * One part of an answer: reasoning, text or a tool call.
 *
 * Text and calls are stored in the event itself; a text part has its length in characters, a call part the call's id.
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
