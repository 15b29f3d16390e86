/**
 * Which model an agent asks, and how.
 *
 * A definition names a provider and a model, never an address or a key: those
 * come from the operator's environment, so nobody who may write
 * an agent can send its prompts elsewhere.
 */
import { Schema } from "effect"
import { findFault, type JsonFault, pointerStep } from "./json.ts"
import { ModelPrice } from "./model-price.ts"
import { Script } from "./script.ts"

/** Accepts null as absent. */
const opt = <S extends Schema.Top>(schema: S) => Schema.optional(Schema.NullOr(schema))

/** Who answers. `scripted` needs no network and says of itself that it is a script; so does `replay`, which answers as a recorded run was answered. */
export const ModelProvider = Schema.Literals([
  "openai",
  "anthropic",
  "google",
  "google-vertex",
  "azure",
  "amazon-bedrock",
  "mistral",
  "openrouter",
  "openai-compatible",
  "scripted",
  "replay"
])
export type ModelProvider = typeof ModelProvider.Type

const ModelName = Schema.String.check(Schema.isBetweenLength(1, 200))

/** A provider and one of its models; for `replay` the id of the recorded run. */
export const ModelRef = Schema.Struct({
  provider: ModelProvider,
  name: ModelName,
  price: opt(ModelPrice),
  /** In tokens, prompt and answer together; without it the window is taken from a table, or learned when the model refuses a prompt. */
  contextWindow: opt(Schema.Int.check(Schema.isBetween({ minimum: 1_000, maximum: 100_000_000 }))),
  /** How long its answer may pause before the request counts as lost; before its first piece it may take twice as long, at most 240 s. */
  silenceTimeoutMs: opt(Schema.Int.check(Schema.isBetween({ minimum: 1_000, maximum: 240_000 })))
})
export type ModelRef = typeof ModelRef.Type

/** A second model that judges what the first is about to read; `instructions` say what it shall look for besides (S004-F06). */
export const GuardRef = Schema.Struct({
  provider: ModelProvider,
  name: ModelName,
  instructions: opt(Schema.String.check(Schema.isBetweenLength(1, 100_000)))
})
export type GuardRef = typeof GuardRef.Type

/** How much a model thinks before it answers; absent is the model's own default. */
export const ReasoningEffort = Schema.Literals(["none", "low", "medium", "high"])
export type ReasoningEffort = typeof ReasoningEffort.Type

/** Bounds of the provider's options in a definition. */
export const optionsMaxChars = 4_096

/** Options that the provider's package hands on, in that provider's own words. */
export const ProviderOptions = Schema.Record(Schema.String, Schema.Json)
export type ProviderOptions = typeof ProviderOptions.Type

/** Names, without case and separators, that would send a request elsewhere, give it a secret, keep it, or replace what the server says. */
const reservedOptions = new Set([
  ..."url uri baseurl endpoint serverurl headers fetch mcpservers extrabody webhook".split(" "),
  ..."key apikey apikeys token authorization authorizationtoken secret password credentials".split(" "),
  ..."model models messages input contents system systeminstruction instructions prompt".split(" "),
  ..."tools toolchoice stream store background conversation previousresponseid thread plugins".split(" ")
])

/** The first thing in a model's options that no definition may say. */
export const findOptionsFault = (
  {
    maxConcurrency,
    providerOptions,
    provider,
    reasoning
  }: Pick<ModelConfig, "maxConcurrency" | "provider" | "providerOptions" | "reasoning">,
  pointer: string
): JsonFault | undefined => {
  const isAsked = provider !== "scripted" && provider !== "replay"
  if (reasoning && !isAsked)
    return { pointer: `${pointer}/reasoning`, message: `The provider ${provider} has no reasoning` }
  if (maxConcurrency && !isAsked)
    return {
      pointer: `${pointer}/maxConcurrency`,
      message: `The provider ${provider} has no server to be asked, so its requests have no limit`
    }
  if (!providerOptions) return undefined
  const place = `${pointer}/providerOptions`
  if (!isAsked) return { pointer: place, message: `The provider ${provider} has no options` }
  if (JSON.stringify(providerOptions).length > optionsMaxChars)
    return { pointer: place, message: `The options must not be longer than ${optionsMaxChars} characters` }
  return findFault(providerOptions, place) ?? findReservedOption(providerOptions, place)
}

/** `findFault` has bounded the depth. */
const findReservedOption = (value: Schema.Json, pointer: string): JsonFault | undefined => {
  if (typeof value !== "object" || value === null) return undefined
  for (const [key, inner] of Object.entries(value)) {
    const place = pointer + pointerStep(key)
    if (reservedOptions.has(key.toLowerCase().replaceAll(/[^a-z]/g, "")))
      return { pointer: place, message: `The option ${key} cannot be set here` }
    const fault = findReservedOption(inner, place)
    if (fault) return fault
  }
  return undefined
}

export const ModelConfig = Schema.Struct({
  ...ModelRef.fields,
  temperature: opt(Schema.Finite.check(Schema.isBetween({ minimum: 0, maximum: 2 }))),
  maxOutputTokens: opt(Schema.Int.check(Schema.isBetween({ minimum: 1, maximum: 1_000_000 }))),
  reasoning: opt(ReasoningEffort),
  /** Of the first model, and of a fallback with the same provider; they cannot replace what the server sends. */
  providerOptions: opt(ProviderOptions),
  /** How many requests of the agent to the first model one server has open at once; the others wait for their turn. */
  maxConcurrency: opt(Schema.Int.check(Schema.isBetween({ minimum: 1, maximum: 10_000 }))),
  /** For provider `scripted`: the rules; without it, the built-in script of the model's or the agent's name. */
  script: opt(Script),
  /** Asked when the first model cannot answer; never after its output has begun. */
  fallback: opt(ModelRef),
  /** Whether both are asked at the same time; whoever speaks first is heard (S004-F07). */
  race: opt(Schema.Boolean),
  guard: opt(GuardRef)
}).annotate({ identifier: "ModelConfig" })
export type ModelConfig = typeof ModelConfig.Type
