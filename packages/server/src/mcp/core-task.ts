/**
 * A run in the words of the tasks that the revision 2025-11-25 had in its core.
 *
 * Flow: **mcp** → graph → outbox → dispatch → run → tool → task
 *
 * Pure, and made of the newer words (`run-task.ts`), so both revisions tell the
 * same. They differ in names, and in one thing: there a call that came to an
 * error is a failed task.
 */
import { RELATED_TASK_META_KEY } from "@modelcontextprotocol/server"
import type { DetailedTask, ListedTask } from "./run-task.ts"

/** A task as every method of 2025-11-25 tells it. */
export interface CoreTask {
  readonly taskId: string
  readonly status: DetailedTask["status"] | "failed"
  readonly statusMessage: string
  readonly createdAt: string
  readonly lastUpdatedAt: string
  /** How long it is kept: for ever. */
  readonly ttl: null
  readonly pollInterval: number
}

/** A task whose run may have failed. */
export const coreTaskOf = (
  { createdAt, lastUpdatedAt, pollIntervalMs, status, statusMessage, taskId, ttlMs }: ListedTask,
  hasFailed: boolean
): CoreTask => ({
  taskId,
  status: status === "completed" && hasFailed ? "failed" : status,
  statusMessage,
  createdAt,
  lastUpdatedAt,
  ttl: ttlMs,
  pollInterval: pollIntervalMs
})

/** What says to which task a message belongs. */
export const relatedTo = (taskId: string) => ({ [RELATED_TASK_META_KEY]: { taskId } })

/** Whether a task can change no more. */
export const isOver = (status: CoreTask["status"]): boolean =>
  status === "completed" || status === "failed" || status === "cancelled"
