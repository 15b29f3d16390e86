/**
 * Whether the graph moved since an agent looked, judged before a person clicks.
 *
 * The server decides at approval what a movement means; this only says what
 * can be seen now, so a suggestion that looks fresh may still be refused.
 */
import type { ObjectVersion } from "@tropism/domain/graph"
import { changedProperties } from "@tropism/domain/json"
import type { Evidence, SuggestionTask } from "@tropism/domain/task"

export type Staleness =
  | { readonly type: "fresh" }
  /** The object that should be changed or deleted is no longer there. */
  | { readonly type: "gone" }
  | Moved

export interface Moved {
  readonly type: "moved"
  readonly baseVersion: number
  readonly currentVersion: number
  /** The properties that differ from what the agent saw; undefined while that version is not known. */
  readonly moved: ReadonlyArray<string> | undefined
  /** Those among them that the suggestion touches. */
  readonly conflicts: ReadonlyArray<string>
  /** Whether the server is likely to refuse: a deletion may not meet any movement, an update none of what it writes. */
  readonly isOutdated: boolean
}

type Judged = Pick<SuggestionTask, "payload" | "target" | "baseVersion">

/** Judges a suggestion; `history` are the target's versions, needed only once it moved. */
export const judgeStaleness = (
  task: Judged,
  history: ReadonlyArray<ObjectVersion> | undefined
): Staleness => {
  if (isGone(task)) return { type: "gone" }
  const { target, baseVersion } = task
  const change = task.payload.suggestedChanges
  if (target === null || (change.type !== "update" && change.type !== "delete")) return { type: "fresh" }
  if (baseVersion === null || target.version === baseVersion) return { type: "fresh" }
  const base = baseOf(history, baseVersion)
  const moved = base && changedProperties(base.properties, target.properties)
  const isDeletion = change.type === "delete"
  const touched = isDeletion ? moved : Object.keys(change.data)
  const conflicts = moved?.filter((property) => touched?.includes(property)) ?? []
  const isOutdated = isDeletion || conflicts.length > 0
  return { type: "moved", baseVersion, currentVersion: target.version, moved, conflicts, isOutdated }
}

/** Whether the object that should be changed or deleted is no longer there. */
export const isGone = ({ payload, target }: Pick<Judged, "payload" | "target">): boolean =>
  target === null && ["update", "delete"].includes(payload.suggestedChanges.type)

/** The version that the agent saw, when the history at hand has it. */
export const baseOf = (
  history: ReadonlyArray<ObjectVersion> | undefined,
  baseVersion: number | null
): ObjectVersion | undefined => history?.find((version) => version.version === baseVersion)

/** Whether approval is likely to be refused, so that rejecting is the first thing to offer. */
export const isLikelyRefused = (staleness: Staleness): boolean =>
  staleness.type === "gone" || (staleness.type === "moved" && staleness.isOutdated)

/** What became of one piece of evidence; `current` is undefined while it is not known and null when it is gone. */
export const judgeEvidence = (
  evidence: Evidence,
  current: { readonly version: number } | null | undefined
): "unknown" | "same" | "moved" | "gone" => {
  if (current === undefined) return "unknown"
  if (current === null) return "gone"
  return current.version === evidence.version ? "same" : "moved"
}
