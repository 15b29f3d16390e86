/**
 * Says what the server's mark of a suggestion means to whoever looks at it.
 *
 * The server judges, by the domain's own rule, when it lists a suggestion and
 * again when somebody approves it; here nothing is judged.
 */
import type { ObjectVersion } from "@tropism/domain/graph"
import { pointerStep } from "@tropism/domain/json"
import type { Evidence, SuggestionTask } from "@tropism/domain/task"

type Marked = Pick<SuggestionTask, "staleness">

/** Whether what should be changed, deleted or connected is no longer there. */
export const isGone = ({ staleness }: Marked): boolean => staleness?.state === "gone"

/** Whether the agent's capabilities forbid the change by now, so that approving is refused. */
export const isDenied = ({ denial }: Pick<SuggestionTask, "denial">): boolean => denial !== null

/** Whether approval is likely to be refused, so that rejecting is the first thing to offer. */
export const isLikelyRefused = (task: Marked & Pick<SuggestionTask, "denial">): boolean =>
  isGone(task) || isDenied(task) || task.staleness?.state === "outdated"

/** Whether a property lies in, or around, a place that moved and that the suggestion touches. */
export const isInConflict = ({ staleness }: Marked, path: ReadonlyArray<string>): boolean => {
  const here = path.map(pointerStep).join("")
  return (staleness?.conflicts ?? []).some(
    (place) => place === here || place.startsWith(`${here}/`) || here.startsWith(`${place}/`)
  )
}

/** What became of one piece of evidence. */
export const judgeEvidence = (
  { staleness }: Marked,
  { objectId, version }: Evidence
): { readonly type: "same" | "gone" } | { readonly type: "moved"; readonly currentVersion: number } => {
  const changed = staleness?.evidenceChanged.find((each) => each.objectId === objectId)
  if (changed === undefined || version > changed.version) return { type: "same" }
  return changed.currentVersion === null
    ? { type: "gone" }
    : { type: "moved", currentVersion: changed.currentVersion }
}

/** The version that the agent saw, when the history at hand has it. */
export const baseOf = (
  history: ReadonlyArray<ObjectVersion> | undefined,
  baseVersion: number | null
): ObjectVersion | undefined => history?.find((version) => version.version === baseVersion)

/** Whether the target or the evidence moved since the agent looked, so that it may be asked to look again. */
export const hasMovedSince = ({ staleness }: Marked): boolean =>
  staleness !== null && (staleness.state !== "fresh" || staleness.evidenceChanged.length > 0)

/** Whether a run looks at it again right now. */
export const isLookedAtAgain = ({ rerun }: Pick<SuggestionTask, "rerun">): boolean =>
  rerun !== null && ["queued", "running", "paused"].includes(rerun.status)
