/**
 * Who decided a task and how, in a sentence for whoever comes second.
 */
import type { Task, TaskStatus, TaskType } from "@tropism/domain/task"

/** How a task that is no suggestion is done. */
const doneVerbs: Readonly<Partial<Record<TaskType, string>>> = { question: "answered" }

const verbs: Readonly<Record<Exclude<TaskStatus, "pending">, string>> = {
  completed: "approved",
  rejected: "rejected",
  expired: "expired"
}

/** **Details** `shown` makes the characters of a foreign text visible. Undefined while the task waits. */
export const decidedSentence = (
  task: Pick<Task, "number" | "resolutionNote" | "resolvedBy" | "status" | "type">,
  shown: (text: string) => string
): string | undefined => {
  if (task.status === "pending") return undefined
  if (task.status === "expired" || task.resolvedBy === null)
    return `#${task.number} ${task.status === "expired" ? "has expired" : `was ${verbs[task.status]}`}.`
  const verb = (task.status === "completed" ? doneVerbs[task.type] : undefined) ?? verbs[task.status]
  const reason =
    task.status === "rejected" && task.resolutionNote !== null && task.resolutionNote !== ""
      ? ` Reason: “${shown(task.resolutionNote)}”.`
      : ""
  return `${shown(task.resolvedBy)} has ${verb} #${task.number} already.${reason}`
}
