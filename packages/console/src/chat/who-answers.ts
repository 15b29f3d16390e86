/**
 * Who answers for an agent: a language model, or a script that is none.
 *
 * Pure. The server falls back from a model without a key to its default, and from there to a script.
 */
import type { ModelsState } from "@tropism/api/models-api"
import type { Agent } from "@tropism/domain/agent"

/** A sentence where a script answers; undefined where a model does. */
export const scriptNotice = (
  { model, name }: Pick<Agent, "model" | "name">,
  models: Pick<ModelsState, "default" | "providers">
): string | undefined => {
  if (model?.provider === "scripted") return `Replies from ${name} are scripted.`
  const isMissing =
    model !== null && models.providers.some((one) => one.provider === model.provider && one.missing !== null)
  const usesDefault = model === null || isMissing
  const defaultIsScript = models.default === null || models.default.provider === "scripted"
  return usesDefault && defaultIsScript
    ? `No model API key configured. Replies from ${name} are scripted.`
    : undefined
}
