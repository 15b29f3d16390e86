/**
 * Checks people's decisions: an approved task made one change, every other task none.
 */
import { type Checker, countsUp, unless } from "./remains.ts"

const decisionsApplied: Checker = ({ tasks, events }) => {
  const changesOf = Map.groupBy(events, (event) => event.taskId)
  return tasks.flatMap((task) => {
    if (task.type === "question")
      return unless(!changesOf.has(task.id), `the answer to question ${task.ordinal} changed something`)
    const at = `task ${task.ordinal} (${task.status})`
    const changes = changesOf.get(task.id) ?? []
    if (task.status !== "completed")
      return [
        ...unless(changes.length === 0 && task.outcome === null, `${at} changed something`),
        ...unless((task.status === "pending") === (task.resolvedBy === null), `${at} has the wrong decider`)
      ]
    const { outcome } = task
    if (outcome === null || task.resolvedBy === null)
      return [`${at} has no outcome or nobody who approved it`]
    const ofTarget = changes.filter(
      (event) => event.entityId === outcome.entityId && event.version === outcome.version
    )
    return unless(
      outcome.change === "unchanged" ? changes.length === 0 : ofTarget.length === 1 && changes.length === 1,
      `${at} made ${changes.length} changes`
    )
  })
}

/** What a reviewer was told was decided is decided so, and was decided by nobody else. */
const decisionsKept: Checker = ({ acknowledged, tasks }) => {
  const statusOf = new Map<string, string>(tasks.map((task) => [task.id, task.status]))
  const told = [...acknowledged.approved, ...acknowledged.rejected]
  return [
    ...acknowledged.approved.flatMap((id) =>
      unless(statusOf.get(id) === "completed", `the approval of task ${id} is lost`)
    ),
    ...acknowledged.rejected.flatMap((id) =>
      unless(statusOf.get(id) === "rejected", `the rejection of task ${id} is lost`)
    ),
    ...unless(new Set(told).size === told.length, "two people were told that they decided one task")
  ]
}

const tasksNumbered: Checker = ({ tasks, lastTaskNumber }) =>
  unless(
    countsUp(tasks.map((task) => task.ordinal)) && lastTaskNumber === tasks.length,
    `the tasks are numbered ${tasks.map((task) => task.ordinal).join(", ")}, the last ${lastTaskNumber}`
  )

export const checkReview = { decisionsApplied, decisionsKept, tasksNumbered }
