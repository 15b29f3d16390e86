/**
 * The processing log: which agent has handled which object version once.
 *
 * An entry is unique per agent, object, version, event type and attempt, and
 * the database keeps it so. `skipped` is not `completed`: work that was not
 * done is never recorded as done.
 */
import { Schema } from "effect"
import { ChangeType } from "./graph.ts"
import { AgentId, EntryId, GraphEventId, ObjectId, RunId, Timestamp } from "./ids.ts"

export const EntryStatus = Schema.Literals([
  "pending",
  "processing",
  "completed",
  "failed",
  "abandoned",
  "skipped"
])
export type EntryStatus = typeof EntryStatus.Type

/** Every legal step of an entry, by the state that it leaves (S001-R18). */
export const entryTransitions: Readonly<Record<EntryStatus, ReadonlyArray<EntryStatus>>> = {
  pending: ["processing", "failed", "abandoned"],
  processing: ["completed", "failed", "abandoned", "processing"],
  completed: [],
  failed: [],
  abandoned: [],
  skipped: []
}

export const ProcessingEntry = Schema.Struct({
  id: EntryId,
  agentId: AgentId,
  graphObjectId: ObjectId,
  objectVersion: Schema.Int,
  eventType: ChangeType,
  eventId: GraphEventId,
  attempt: Schema.Int,
  status: EntryStatus,
  runId: Schema.NullOr(RunId),
  /** Why the entry was skipped or ended in another way than the agent finishing its work. */
  reason: Schema.NullOr(Schema.String),
  errorMessage: Schema.NullOr(Schema.String),
  startedAt: Schema.NullOr(Timestamp),
  completedAt: Schema.NullOr(Timestamp),
  createdAt: Timestamp
}).annotate({ identifier: "ProcessingEntry" })
export type ProcessingEntry = typeof ProcessingEntry.Type
