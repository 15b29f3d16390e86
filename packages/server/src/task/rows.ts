/**
 * A task's row as the database gives it, turned into the domain's words.
 *
 * Flow: graph → outbox → dispatch → run → tool → **task**
 */
import type { GraphObject, Relationship } from "@tropism/domain/graph"
import { type ChangedEvidence, toldStaleness } from "@tropism/domain/staleness"
import type {
  PromotionTask,
  QuestionTask,
  SuggestionTask,
  Task,
  TaskRevision,
  TodoTask,
  UndoTask
} from "@tropism/domain/task"
import { type AtStake, denialOf, type Found, standingOf } from "./standing.ts"

/** Every column that some kind of task tells; what a kind does not have is null in its rows. */
export interface TaskRow extends Omit<
  SuggestionTask,
  | "number"
  | "createdAt"
  | "resolvedAt"
  | "refinedAt"
  | "expiresAt"
  | "target"
  | "relationship"
  | "staleness"
  | "denial"
  | "type"
  | "payload"
  | "outcome"
> {
  readonly type: Task["type"]
  readonly payload: unknown
  readonly outcome: unknown
  readonly revision: number
  readonly owner: string
  readonly number: bigint
  readonly createdAt: Date
  readonly resolvedAt: Date | null
  readonly refinedAt: Date | null
  readonly expiresAt: Date | null
  readonly target: GraphObject | null
  readonly relationship: Relationship | null
  /** What it meets in the graph; null when that was not asked. */
  readonly found: Found | null
  readonly evidenceChanged: ReadonlyArray<ChangedEvidence> | null
  readonly rights: AtStake | null
}

/** The payload is of the kind that its type names: both are written by one statement. */
export const toTask = (row: TaskRow): Task => {
  switch (row.type) {
    case "todo":
      return { ...commonOf(row), type: row.type, owner: row.owner as TodoTask["owner"] }
    case "question":
      return {
        ...commonOf(row),
        ...fromAgentOf(row),
        type: row.type,
        payload: row.payload as QuestionTask["payload"]
      }
    case "undo":
      return {
        ...commonOf(row),
        type: row.type,
        payload: row.payload as UndoTask["payload"],
        digest: row.digest,
        revision: row.revision,
        outcome: row.outcome as UndoTask["outcome"]
      }
    case "promotion":
      return {
        ...commonOf(row),
        type: row.type,
        payload: row.payload as PromotionTask["payload"],
        digest: row.digest,
        agentId: row.agentId,
        agentName: row.agentName
      }
    default: {
      const payload = row.payload as SuggestionTask["payload"]
      return {
        ...commonOf(row),
        ...fromAgentOf(row),
        type: row.type,
        payload,
        agentState: row.agentState,
        agentVersion: row.agentVersion,
        revision: row.revision,
        refinedAt: row.refinedAt?.toISOString() ?? null,
        expiresAt: row.expiresAt?.toISOString() ?? null,
        baseVersion: row.baseVersion,
        evidence: row.evidence,
        untrusted: row.untrusted,
        target: row.target && inWireTime(row.target),
        relationship: row.relationship && inWireTime(row.relationship),
        staleness:
          row.found &&
          toldStaleness(
            payload.suggestedChanges,
            standingOf({ ...row, type: row.type, found: row.found }),
            row.evidenceChanged ?? []
          ),
        denial: row.rights && denialOf(payload.suggestedChanges, row.rights),
        rerun: row.rerun,
        outcome: row.outcome as SuggestionTask["outcome"]
      }
    }
  }
}

export interface RevisionRow extends Omit<TaskRevision, "createdAt"> {
  readonly createdAt: Date
}

export const toRevision = (row: RevisionRow): TaskRevision => ({
  revision: row.revision,
  payload: row.payload,
  digest: row.digest,
  runId: row.runId,
  agentVersion: row.agentVersion,
  baseVersion: row.baseVersion,
  evidence: row.evidence,
  createdAt: row.createdAt.toISOString()
})

const commonOf = (row: TaskRow) => ({
  id: row.id,
  number: Number(row.number),
  status: row.status,
  title: row.title,
  description: row.description,
  resolvedBy: row.resolvedBy,
  resolutionNote: row.resolutionNote,
  createdAt: row.createdAt.toISOString(),
  resolvedAt: row.resolvedAt?.toISOString() ?? null
})

const fromAgentOf = (row: TaskRow) => ({
  digest: row.digest,
  agentId: row.agentId,
  agentName: row.agentName,
  runId: row.runId,
  assignee: row.assignee
})

/** Inside JSON, PostgreSQL spells an instant in its own way. */
const inWireTime = <A extends { readonly createdAt: string; readonly updatedAt: string }>(entity: A): A => ({
  ...entity,
  createdAt: new Date(entity.createdAt).toISOString(),
  updatedAt: new Date(entity.updatedAt).toISOString()
})
