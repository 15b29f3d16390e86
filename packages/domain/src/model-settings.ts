/**
 * What the definition of an agent's model sets in the contexts that it works in.
 *
 * A log says by itself who was asked and who watched, so what the definition says
 * is written into it as the events by which a person would have set it. A guard
 * of the definition stands whatever the log said before.
 */
import { Option } from "effect"
import { type ContextConfig, emptyConfig } from "./context-config.ts"
import type { NewEvent } from "./context-event.ts"
import type { ModelConfig } from "./model-config.ts"

type Model = Pick<ModelConfig, "guard" | "race"> | null

/** The events that begin a context of an agent with this model. */
export const firstSettings = (model: Model): ReadonlyArray<NewEvent> => [
  ...(model?.race === true ? [{ type: "SetRacingEvent", isRacing: true } as const] : []),
  ...guardSettings(model, emptyConfig)
]

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
