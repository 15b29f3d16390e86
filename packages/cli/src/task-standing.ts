/**
 * Where a task stands while it waits: what moved under it, who is asked, how often it was said anew.
 */
import { placeText } from "@tropism/domain/property-filter"
import type { Staleness } from "@tropism/domain/staleness"
import { isSuggestion, type SuggestionTask, type Task } from "@tropism/domain/task"
import type { Fact } from "./print-records.ts"
import type { Paint } from "./terminal/paint.ts"
import { formatAge, formatWait } from "./terminal/time.ts"

/** The same in a few words for a list; nothing where all is as the agent saw it. */
export const standingNote = (task: Task, nowMs: number): string =>
  [
    expiresSoon(task, nowMs) ? `${formatWait(task.expiresAt, nowMs)} left` : "",
    isSuggestion(task) && task.staleness ? shortState(task.staleness) : "",
    isSuggestion(task) && task.agentState !== "enabled" && task.status === "pending"
      ? `agent ${task.agentState}`
      : "",
    isSuggestion(task) && task.denial !== null ? "not permitted" : "",
    isSuggestion(task) && task.untrusted.length > 0 ? "untrusted" : "",
    "assignee" in task && task.assignee !== null ? `for ${task.assignee}` : "",
    isSuggestion(task) && task.revision > 1 ? `revision ${task.revision}` : ""
  ]
    .filter((note) => note !== "")
    .join(", ")

/** The same with all that is known, for one task. */
export const standingFacts = (task: Task, nowMs: number, paint: Paint): ReadonlyArray<Fact> => [
  ["Assignee", "assignee" in task ? (task.assignee ?? "") : ""],
  untilFact(task, nowMs, paint),
  ...(isSuggestion(task) && task.denial !== null
    ? [["Denied", `yes, can only be rejected: ${task.denial}`, paint.bad] as const]
    : []),
  ...(isSuggestion(task)
    ? ([
        ["Revision", revisionText(task, nowMs)],
        ["Stale", task.staleness ? staleText(task.staleness) : ""],
        ["Changed since", task.staleness ? evidenceText(task.staleness) : ""],
        ["Re-evaluated", task.rerun ? `run ${task.rerun.runId}, ${task.rerun.status}` : ""]
      ] as const)
    : [])
]

/** A person who looks once a day still sees it in time. */
const soonMs = 86_400_000

/** Whether a suggestion waits, and not much longer. */
export const expiresSoon = (
  task: Task,
  nowMs: number
): task is SuggestionTask & { readonly expiresAt: string } =>
  isSuggestion(task) &&
  task.status === "pending" &&
  task.expiresAt !== null &&
  Date.parse(task.expiresAt) - nowMs < soonMs

const untilFact = (task: Task, nowMs: number, paint: Paint): Fact =>
  expiresSoon(task, nowMs)
    ? ["Expires", untilText(task, nowMs), paint.waiting]
    : ["Expires", untilText(task, nowMs)]

const untilText = (task: Task, nowMs: number): string =>
  !isSuggestion(task) || task.expiresAt === null
    ? ""
    : task.status === "pending"
      ? `${task.expiresAt}, ${formatWait(task.expiresAt, nowMs)} left`
      : task.expiresAt

const shortState = ({ evidenceChanged, state }: Staleness): string =>
  state === "fresh" ? (evidenceChanged.length > 0 ? "evidence changed" : "") : state

const staleText = ({ added, conflicts, currentVersion, moved, state, takenBy }: Staleness): string => {
  switch (state) {
    case "fresh":
      return ""
    case "rebasable":
      return `no: applied on top of version ${currentVersion}, where ${placesText(moved)} changed`
    case "gone":
      return "yes: the target was deleted"
    case "outdated":
      return `yes: ${[
        ...(conflicts.length > 0 ? [`${placesText(conflicts)} changed`] : []),
        ...(added.length > 0 ? [`${added.length} new relationships would be deleted with it`] : []),
        ...(takenBy === null ? [] : [`${takenBy} already exists`])
      ].join("; ")}`
  }
}

const placesText = (pointers: ReadonlyArray<string>): string => pointers.map(placeText).join(", ")

const evidenceText = ({ evidenceChanged }: Staleness): string =>
  evidenceChanged
    .map(({ currentVersion, type, version }) =>
      currentVersion === null ? `${type} v${version} → deleted` : `${type} v${version} → v${currentVersion}`
    )
    .join(", ")

const revisionText = (
  { refinedAt, revision }: { readonly revision: number; readonly refinedAt: string | null },
  nowMs: number
): string =>
  revision > 1 ? `${revision}${refinedAt === null ? "" : `, ${formatAge(refinedAt, nowMs)} ago`}` : ""
