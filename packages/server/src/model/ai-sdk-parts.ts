/**
 * Turns the parts an AI SDK model streams into effect's.
 *
 * One part in, at most one part out, or a failure. What a package hands on without a
 * look is looked at here, because nobody behind this does. An answer that stops without
 * saying that it is finished is a failure here, whatever the provider package
 * made of it. Arguments are judged as text, because a decoder would already
 * have rounded a large integer.
 */
import type {
  LanguageModelV4FinishReason,
  LanguageModelV4StreamPart,
  LanguageModelV4Usage,
  SharedV4ProviderMetadata
} from "@ai-sdk/provider"
import { scanJson } from "@tropism/domain/json-text"
import { Effect, Option, Schema } from "effect"
import type { AiError, Response } from "effect/ai"
import { cutShort, endedTooEarly, type Teller, toAiError, unallowed } from "./ai-sdk-error.ts"

/** Where a tool call's metadata keeps why its arguments cannot be used. */
export const argumentsFault = "argumentsFault"

/** Translates one streamed part. */
export const toResponsePart = (
  part: LanguageModelV4StreamPart,
  teller: Teller
): Effect.Effect<ReadonlyArray<Response.StreamPartEncoded>, AiError.AiError> => {
  if (!isSound(part)) return Effect.fail(unallowed(teller.where))
  switch (part.type) {
    case "text-start":
    case "text-end":
    case "reasoning-start":
    case "reasoning-end":
      return Effect.succeed([{ type: part.type, id: part.id, ...metadataOf(part) }])
    case "text-delta":
    case "reasoning-delta":
      return Effect.succeed([{ type: part.type, id: part.id, delta: part.delta, ...metadataOf(part) }])
    // Arguments on their way show that the model is alive; only the whole call is used.
    case "tool-input-start":
      return Effect.succeed([{ type: "tool-params-start", id: part.id, name: part.toolName }])
    case "tool-input-delta":
      return Effect.succeed([{ type: "tool-params-delta", id: part.id, delta: part.delta }])
    case "tool-input-end":
      return Effect.succeed([{ type: "tool-params-end", id: part.id }])
    case "tool-call":
      return Effect.succeed([
        { type: "tool-call", id: part.toolCallId, name: part.toolName, ...toCall(part) }
      ])
    case "finish": {
      const reason = reasonOf(part.finishReason)
      return reason === undefined
        ? Effect.fail(cutShort(endedTooEarly(teller.where)))
        : Effect.succeed([{ type: "finish", reason, usage: toUsage(part.usage) }])
    }
    case "error":
      return Effect.flatMap(toAiError(part.error, teller), Effect.fail)
    default:
      return Effect.succeed([])
  }
}

/**
 * Puts back the arguments of a call that a package replaced.
 *
 * **Details** OpenRouter's package hands on `{}` for arguments that are no JSON, and the call would be made without any.
 * How much may come is bounded where the parts are measured.
 */
export const makeArgumentsKeeper = () => {
  const written = new Map<string, string>()
  return (part: LanguageModelV4StreamPart): LanguageModelV4StreamPart => {
    if (part.type === "tool-input-delta") written.set(part.id, (written.get(part.id) ?? "") + part.delta)
    if (part.type !== "tool-call") return part
    const text = written.get(part.toolCallId)?.trim() ?? ""
    written.delete(part.toolCallId)
    return part.input === "{}" && text !== "" ? { ...part, input: text } : part
  }
}

/** Whether a part has the text that its type promises. */
const isSound = (part: LanguageModelV4StreamPart): boolean => {
  switch (part.type) {
    case "text-delta":
    case "reasoning-delta":
    case "tool-input-delta":
      return typeof part.delta === "string"
    case "tool-call":
      return [part.toolCallId, part.toolName, part.input].every((text) => typeof text === "string")
    default:
      return true
  }
}

/** Why an answer ended; undefined where it broke off before its provider said so: some packages call that `other`. */
const reasonOf = ({ raw, unified }: LanguageModelV4FinishReason): Response.FinishReason | undefined => {
  if (unified === "interrupted" || unified === "error") return undefined
  // The package counts Anthropic's pause as an end.
  if (raw === "pause_turn") return "pause"
  if (unified !== "other") return unified
  // OpenRouter's package does not know `error`, nor Bedrock's `malformed_tool_use` and `malformed_model_output`.
  if (raw === undefined || brokenOff.test(raw)) return undefined
  if (withheld.test(raw)) return "content-filter"
  return atLimit.test(raw) ? "length" : unified
}

/** Reasons that servers with the API of OpenAI give in the words of the model's own maker: Google's, Zhipu's, Mistral's, vLLM's. */
const brokenOff = /^(?:error|abort(?:ed)?|network_error|malformed_.*)$/i
const withheld = /^(?:safety|recitation|blocklist|prohibited_content|spii|sensitive)$/i
const atLimit = /^(?:model_context_window_exceeded|model_length|max_(?:output_)?tokens)$/i

const toCall = (part: Extract<LanguageModelV4StreamPart, { readonly type: "tool-call" }>) => {
  const { metadata: fault, params } = decodeArguments(part.input)
  const metadata = { ...metadataOf(part).metadata, ...fault }
  return Object.keys(metadata).length === 0 ? { params } : { params, metadata }
}

const Metadata = Schema.fromJsonString(
  Schema.Record(Schema.String, Schema.Record(Schema.String, Schema.Json))
)
const decodeMetadata = Schema.decodeUnknownOption(Metadata)

/** What a provider wants to see again, as JSON that the log can keep; what it cannot keep is left out. */
const metadataOf = (part: {
  readonly providerMetadata?: SharedV4ProviderMetadata
}): { readonly metadata?: typeof Metadata.Type } => {
  if (part.providerMetadata === undefined) return {}
  const text = JSON.stringify(part.providerMetadata)
  if (/\\u(?:0000|d[89a-f])/i.test(text)) return {}
  const metadata = Object.fromEntries(
    Object.entries(Option.getOrElse(decodeMetadata(text), () => ({}))).filter(
      ([, value]) => Object.keys(value).length > 0
    )
  )
  return Object.keys(metadata).length === 0 ? {} : { metadata }
}

const decodeJson = Schema.decodeUnknownOption(Schema.fromJsonString(Schema.Json))

/** No arguments at all are an empty object: so some models call a tool that needs none. */
const decodeArguments = (
  text: string
): { readonly params: Schema.Json; readonly metadata?: Response.ProviderMetadata } => {
  if (text.trim() === "") return { params: {} }
  const fault = scanJson(text)
  const value = fault === undefined ? decodeJson(text) : Option.none()
  if (Option.isSome(value)) return { params: value.value }
  return {
    params: text,
    metadata: { [argumentsFault]: fault?.message ?? "The arguments are not valid JSON" }
  }
}

const toUsage = (usage: LanguageModelV4Usage): typeof Response.Usage.Encoded => ({
  inputTokens: {
    total: toCount(usage.inputTokens.total),
    uncached: toCount(usage.inputTokens.noCache),
    cacheRead: toCount(usage.inputTokens.cacheRead),
    cacheWrite: toCount(usage.inputTokens.cacheWrite)
  },
  outputTokens: {
    total: toCount(usage.outputTokens.total),
    text: toCount(usage.outputTokens.text),
    reasoning: toCount(usage.outputTokens.reasoning)
  }
})

/** Some servers count in fractions, or report NaN where they do not know. */
const toCount = (tokens: number | undefined): number | undefined =>
  tokens === undefined || !Number.isFinite(tokens) ? undefined : Math.max(0, Math.round(tokens))
