/**
 * What an agent's definition sets in the contexts that it works in.
 *
 * A log says by itself who was asked, who watched and how much of it was shown, so
 * what the definition says is written into it as the events by which a person would
 * have set it. A guard of the definition stands whatever the log said before; its
 * reducer stands where nobody has set one in the context.
 */
import { Option } from "effect"
import { type ContextConfig, emptyConfig } from "./context-config.ts"
import type { NewEvent } from "./context-event.ts"
import { promptTokens, type WindowState } from "./context-window.ts"
import { canonicalJson } from "./json.ts"
import type { ModelConfig } from "./model-config.ts"
import { agentReducer, type ReducerConfig, windowBounds } from "./prompt-window.ts"

type Model = Pick<ModelConfig, "guard" | "race"> | null

/** The events that begin a context of an agent with this model and reducer. */
export const firstSettings = ({
  model,
  reducer
}: {
  readonly model: Model
  readonly reducer: ReducerConfig | null
}): ReadonlyArray<NewEvent> => [
  ...(model?.race === true ? [{ type: "SetRacingEvent", isRacing: true } as const] : []),
  ...guardSettings(model, emptyConfig),
  ...(reducer ? [{ type: "SetReducerEvent", reducer, isOfAgent: true } as const] : [])
]

/** The event that puts the definition's reducer in its place; the default one only where the window fills. */
export const reducerSettings = (
  reducer: ReducerConfig | null,
  context: WindowState & { readonly config: ContextConfig }
): ReadonlyArray<NewEvent> => {
  const known = Option.getOrNull(context.config.agentReducer)
  const isFilled = promptTokens(context) > agentReducer.maxTokens * windowBounds.filledShare
  const isDefault = reducer === null && known === null
  if (isDefault && (Option.isSome(context.config.reducer) || !isFilled)) return []
  const wanted = reducer ?? agentReducer
  return known && (known === wanted || canonicalJson(known) === canonicalJson(wanted))
    ? []
    : [{ type: "SetReducerEvent", reducer: wanted, isOfAgent: true }]
}

/** The event that puts the definition's guard in its place, where a context has another or none. */
export const guardSettings = (
  model: Model,
  { guard: known }: Pick<ContextConfig, "guard">
): ReadonlyArray<NewEvent> => {
  const guard = model?.guard
  if (!guard) return []
  const isKnown = Option.exists(
    known,
    ({ instructions, name, provider }) =>
      provider === guard.provider && name === guard.name && instructions === (guard.instructions ?? null)
  )
  return isKnown ? [] : [{ type: "SetGuardEvent", guard }]
}
