/**
 * A task's row as the database gives it, turned into the domain's words.
 *
 * Flow: graph → outbox → dispatch → run → tool → **task**
 */
import type { GraphObject } from "@tropism/domain/graph"
import type { SuggestionTask, Task } from "@tropism/domain/task"

export interface TaskRow extends Omit<
  SuggestionTask,
  "number" | "createdAt" | "resolvedAt" | "target" | "type" | "payload"
> {
  readonly type: Task["type"]
  readonly payload: Task["payload"]
  readonly number: bigint
  readonly createdAt: Date
  readonly resolvedAt: Date | null
  readonly target: GraphObject | null
}

/** The payload is of the kind that its type names: both are written by one statement. */
export const toTask = (row: TaskRow): Task =>
  ({ ...commonOf(row), type: row.type, payload: row.payload }) as Task

const commonOf = (row: TaskRow) => ({
  id: row.id,
  number: Number(row.number),
  status: row.status,
  title: row.title,
  description: row.description,
  digest: row.digest,
  agentId: row.agentId,
  agentName: row.agentName,
  runId: row.runId,
  baseVersion: row.baseVersion,
  evidence: row.evidence,
  target: row.target && {
    ...row.target,
    createdAt: iso(row.target.createdAt),
    updatedAt: iso(row.target.updatedAt)
  },
  resolvedBy: row.resolvedBy,
  resolutionNote: row.resolutionNote,
  outcome: row.outcome,
  createdAt: row.createdAt.toISOString(),
  resolvedAt: row.resolvedAt?.toISOString() ?? null
})

/** PostgreSQL's own spelling of an instant inside JSON, in the wire's spelling. */
const iso = (text: string): string => new Date(text).toISOString()
