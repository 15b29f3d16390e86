/**
 * Whom an agent asks after all: its definition, and what somebody set since where it works.
 *
 * Flow: graph → outbox → dispatch → run → **model** → tool → task
 *
 * What was set names a provider and a model and nothing else of the operator's.
 * Where it names a model that the definition names as well, it is that one, with
 * its script and its price; what it says of temperature and length comes first.
 */
import type { ContextConfig, LlmConfig } from "@tropism/domain/context-config"
import type { ModelConfig, ModelRef, ProviderOptions, ReasoningEffort } from "@tropism/domain/model-config"
import type { Script } from "@tropism/domain/script"
import { Option } from "effect"

/** What somebody set of the models, in one context. */
export type ModelSettings = Pick<ContextConfig, "primary" | "fallback" | "retry" | "isRacing">

/** One model that may be asked, with what it is asked with. */
export interface WantedModel extends ModelRef {
  readonly temperature?: number | null | undefined
  readonly maxOutputTokens?: number | null | undefined
  readonly reasoning?: ReasoningEffort | null | undefined
  readonly providerOptions?: ProviderOptions | null | undefined
  readonly maxConcurrency?: number | null | undefined
  /** A script of its own. */
  readonly script?: Script | null | undefined
  /** Set in a context: only a script of its name may answer for it. */
  readonly isSet?: boolean
}

export interface ChosenModels {
  readonly primary: WantedModel
  readonly fallback: WantedModel | null
}

/** Chooses among the models of a definition (`own`: the one that it comes to by itself, if any) and those that were set. */
export const chooseModels = (
  own: ModelRef | undefined,
  definition: ModelConfig | null,
  settings: ModelSettings | undefined
): ChosenModels | undefined => {
  const { fallback, ...first }: ModelConfig = definition ?? { provider: "scripted", name: "" }
  const { maxOutputTokens, providerOptions, reasoning, temperature } = first
  const shared = { temperature, maxOutputTokens, reasoning }
  // Options are one provider's own words.
  const options = fallback?.provider === first.provider ? { providerOptions } : {}
  const ownFallback = fallback ? { ...shared, ...options, ...fallback } : null
  const ownPrimary = own && { ...(definition ? first : {}), ...own }
  const known = [ownPrimary, ownFallback].filter((each) => each !== undefined && each !== null)
  const setPrimary = settings && Option.getOrUndefined(settings.primary)
  const setFallback = settings && Option.getOrUndefined(settings.fallback)
  const primary = setPrimary ? asKnown(setPrimary, known) : ownPrimary
  return primary && { primary, fallback: setFallback ? asKnown(setFallback, known) : ownFallback }
}

const asKnown = (set: LlmConfig, known: ReadonlyArray<WantedModel>): WantedModel => {
  const same = known.find(({ name, provider }) => name === set.name && provider === set.provider)
  return same ? { ...same, ...set } : { ...set, isSet: true }
}
