/**
 * Whether anybody can think for the agent that a draft describes.
 *
 * Pure. The server knows it of an agent as it is saved, by asking as a run of
 * it would ask; of a model that was chosen since, only its provider is known.
 */
import type { ModelsState } from "@tropism/api/models-api"
import { canonicalJson } from "@tropism/domain/json"
import type { AgentDraft } from "./agent-draft.ts"

/** An agent as it is saved, before what the form changes. */
export interface SavedAgent {
  readonly draft: AgentDraft
  /** Why no model can be asked for it; null where one can, or nobody knows yet. */
  readonly missing: string | null
}

/** Why no model can be asked, as a sentence; null where one can, or nobody knows yet. */
export const missingOf = (
  draft: AgentDraft,
  saved: SavedAgent | undefined,
  models: ModelsState | undefined
): string | null => {
  if (saved !== undefined && isSameModel(draft, saved.draft)) return saved.missing && sentence(saved.missing)
  const missing =
    draft.model.provider === ""
      ? models?.defaultMissing
      : models?.providers.find(({ provider }) => provider === draft.model.provider)?.missing
  return missing ? sentence(missing) : null
}

/** Whether saving a draft makes an agent wake for runs that nobody can think for, where it did not before. */
export const wouldWakeInVain = (
  draft: AgentDraft,
  saved: SavedAgent | undefined,
  missing: string | null
): boolean =>
  draft.enabled &&
  missing !== null &&
  !(saved !== undefined && saved.draft.enabled && isSameModel(draft, saved.draft))

const isSameModel = (one: AgentDraft, other: AgentDraft): boolean =>
  canonicalJson(one.model) === canonicalJson(other.model)

const sentence = (text: string): string =>
  `${text.slice(0, 1).toUpperCase()}${text.slice(1)}${text.endsWith(".") ? "" : "."}`
