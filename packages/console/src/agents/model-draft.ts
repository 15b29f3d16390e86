/**
 * Which model is asked, as a form holds it, for an agent or for a step of its flow.
 *
 * Pure. Without a provider nothing is said of it: an agent's is the server's
 * default then, a step's the agent's.
 */
import type { ModelConfig, ModelRef } from "@tropism/domain/model-config"
import { Result } from "effect"
import {
  type DraftFault,
  given,
  jsonText,
  numberGiven,
  numberText,
  objectGiven,
  type Sent
} from "./draft-texts.ts"
import { type PriceDraft, priceDraftOf, priceOf } from "./price-draft.ts"

export interface ModelRefDraft {
  readonly provider: string
  readonly name: string
  readonly price: PriceDraft | null
  readonly contextWindow: string
  readonly silenceTimeoutMs: string
}

export interface GuardDraft {
  readonly provider: string
  readonly name: string
  readonly instructions: string
}

export interface ModelDraft extends ModelRefDraft {
  readonly temperature: string
  readonly maxOutputTokens: string
  readonly maxConcurrency: string
  /** Empty is the model's own default. */
  readonly reasoning: string
  /** JSON, in the provider's words. */
  readonly providerOptions: string
  /** JSON, for the provider `scripted`. */
  readonly script: string
  /** Null is nobody. */
  readonly fallback: ModelRefDraft | null
  readonly race: boolean
  /** Null is nobody. */
  readonly guard: GuardDraft | null
}

export const emptyModel: ModelDraft = {
  provider: "",
  name: "",
  price: null,
  contextWindow: "",
  silenceTimeoutMs: "",
  temperature: "",
  maxOutputTokens: "",
  maxConcurrency: "",
  reasoning: "",
  providerOptions: "",
  script: "",
  fallback: null,
  race: false,
  guard: null
}

export const modelDraftOf = (model: ModelConfig | null | undefined): ModelDraft => {
  if (!model) return emptyModel
  const { fallback, guard } = model
  return {
    ...refDraftOf(model),
    temperature: numberText(model.temperature),
    maxOutputTokens: numberText(model.maxOutputTokens),
    maxConcurrency: numberText(model.maxConcurrency),
    reasoning: model.reasoning ?? "",
    providerOptions: jsonText(model.providerOptions),
    script: jsonText(model.script),
    fallback: fallback ? refDraftOf(fallback) : null,
    race: model.race ?? false,
    guard: guard ? { ...guard, instructions: guard.instructions ?? "" } : null
  }
}

const refDraftOf = ({ provider, name, price, contextWindow, silenceTimeoutMs }: ModelRef): ModelRefDraft => ({
  provider,
  name,
  price: priceDraftOf(price),
  contextWindow: numberText(contextWindow),
  silenceTimeoutMs: numberText(silenceTimeoutMs)
})

/** The model that a form says, where it says one; `pointer` is its place in the definition. */
export const modelOf = (draft: ModelDraft, pointer: string): Result.Result<Sent, DraftFault> =>
  Result.gen(function* () {
    if (draft.provider === "") return {}
    const { fallback, guard } = draft
    const script = yield* objectGiven(
      "script",
      draft.script,
      `${pointer}/script`,
      '{"rules": [{"say": "Hello."}]}'
    )
    const options = yield* objectGiven(
      "providerOptions",
      draft.providerOptions,
      `${pointer}/providerOptions`,
      '{"serviceTier": "flex"}'
    )
    const model: Sent = {
      ...refOf(draft),
      ...numberGiven("temperature", draft.temperature),
      ...numberGiven("maxOutputTokens", draft.maxOutputTokens),
      ...numberGiven("maxConcurrency", draft.maxConcurrency),
      ...given("reasoning", draft.reasoning),
      ...options,
      ...script,
      ...(fallback !== null && { fallback: refOf(fallback) }),
      ...(draft.race && { race: true }),
      ...(guard !== null && {
        guard: { provider: guard.provider, name: guard.name, ...given("instructions", guard.instructions) }
      })
    }
    return { model }
  })

const refOf = ({ provider, name, price, contextWindow, silenceTimeoutMs }: ModelRefDraft): Sent => ({
  provider,
  name,
  ...priceOf(price),
  ...numberGiven("contextWindow", contextWindow),
  ...numberGiven("silenceTimeoutMs", silenceTimeoutMs)
})
