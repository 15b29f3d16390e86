/**
 * Which model an agent asks, and how.
 *
 * A definition names a provider and a model, never an address or a key: those
 * come from the operator's environment, so nobody who may write
 * an agent can send its prompts elsewhere.
 */
import { Schema } from "effect"
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
  contextWindow: opt(Schema.Int.check(Schema.isBetween({ minimum: 1_000, maximum: 100_000_000 })))
})
export type ModelRef = typeof ModelRef.Type

/** A second model that judges what the first is about to read; `instructions` say what it shall look for besides (S004-F06). */
export const GuardRef = Schema.Struct({
  provider: ModelProvider,
  name: ModelName,
  instructions: opt(Schema.String.check(Schema.isBetweenLength(1, 100_000)))
})
export type GuardRef = typeof GuardRef.Type

export const ModelConfig = Schema.Struct({
  ...ModelRef.fields,
  temperature: opt(Schema.Finite.check(Schema.isBetween({ minimum: 0, maximum: 2 }))),
  maxOutputTokens: opt(Schema.Int.check(Schema.isBetween({ minimum: 1, maximum: 1_000_000 }))),
  /** For provider `scripted`: the rules; without it, the built-in script of the model's or the agent's name. */
  script: opt(Script),
  /** Asked when the first model cannot answer; never after its output has begun. */
  fallback: opt(ModelRef),
  /** Whether both are asked at the same time; whoever speaks first is heard (S004-F07). */
  race: opt(Schema.Boolean),
  guard: opt(GuardRef)
}).annotate({ identifier: "ModelConfig" })
export type ModelConfig = typeof ModelConfig.Type
