/**
 * The processing log: which agent has handled which object version once.
 *
 * An entry is unique per agent, object, version, event type and attempt, and
 * the database keeps it so. `skipped` is not `completed`: work that was not
 * done is never recorded as done.
 */
import { Schema } from "effect"
import { ChangeType, EntityType } from "./graph.ts"
import { NamedObject } from "./named-object.ts"
import { AgentId, EntryId, GraphEventId, ObjectId, RunId, Timestamp } from "./ids.ts"
import { RunFailure } from "./run.ts"

/** Dead letters, objects or events that one request may name. */
export const batchMaxItems = 100

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
  pending: ["processing", "failed", "skipped"], // skipped: it waited for a run that may not begin any more
  processing: ["completed", "failed", "abandoned", "processing"],
  completed: [],
  failed: [],
  abandoned: [],
  skipped: []
}

/** What an entry is about: a thing of the graph, or what a foreign MCP server told. */
export const HandledType = Schema.Literals([...EntityType.literals, "mcpEvent"])
export type HandledType = typeof HandledType.Type

/** What happened to it; a foreign server's event has occurred. */
export const HandledChange = Schema.Literals([...ChangeType.literals, "occurred"])
export type HandledChange = typeof HandledChange.Type

export const ProcessingEntry = Schema.Struct({
  id: EntryId,
  agentId: AgentId,
  /** Of which kind the thing is whose id stands in `graphObjectId`. */
  entityType: HandledType,
  /** Of an `mcpEvent` the occurrence, or the source where its occurrences stand in one line. */
  graphObjectId: ObjectId,
  /** That object by its name; null of what is no object. */
  subject: Schema.NullOr(NamedObject),
  objectVersion: Schema.Int,
  eventType: HandledChange,
  /** The graph event, or the occurrence. */
  eventId: GraphEventId,
  attempt: Schema.Int,
  status: EntryStatus,
  runId: Schema.NullOr(RunId),
  /** Why the entry waits, was skipped, or ended in another way than the agent finishing its work. */
  reason: Schema.NullOr(Schema.String),
  /** Before this instant no run begins for it; null when it has a run, or waits for no instant. */
  dueAt: Schema.NullOr(Timestamp),
  errorMessage: Schema.NullOr(Schema.String),
  /** Why its run failed, as one word; null where none did, or a person cancelled it. */
  failureReason: Schema.NullOr(RunFailure),
  /** Since when it is a dead letter: it failed or was abandoned and is tried again only when somebody says so. What a person cancelled is none. */
  deadLetteredAt: Schema.NullOr(Timestamp),
  startedAt: Schema.NullOr(Timestamp),
  completedAt: Schema.NullOr(Timestamp),
  createdAt: Timestamp
}).annotate({ identifier: "ProcessingEntry" })
export type ProcessingEntry = typeof ProcessingEntry.Type

/** An object that an agent has not handled, by the event that stands for it, and why. */
export const PendingEvent = Schema.Struct({
  objectId: ObjectId,
  objectType: Schema.String,
  /** The object by its name. */
  subject: NamedObject,
  /** The version that the event made: the newest of a kind that the agent reacts to. */
  version: Schema.Int,
  eventId: GraphEventId,
  /** The newest attempt, when there was any. */
  entryId: Schema.NullOr(EntryId),
  why: Schema.Literals(["skipped", "failed", "abandoned", "refused", "notEnabled", "notConcerned"]),
  reason: Schema.String
}).annotate({ identifier: "PendingEvent" })
export type PendingEvent = typeof PendingEvent.Type

/** What became of objects or events that somebody wants handled; `id` is the one that was named. */
export const BatchTriggered = Schema.Struct({
  queued: Schema.Array(
    Schema.Struct({
      id: Schema.String,
      entryId: EntryId,
      /** Null while the entry waits for a run; then `reason` says for what. */
      runId: Schema.NullOr(RunId),
      reason: Schema.NullOr(Schema.String)
    })
  ),
  skipped: Schema.Array(Schema.Struct({ id: Schema.String, reason: Schema.String }))
}).annotate({ identifier: "BatchTriggered" })
export type BatchTriggered = typeof BatchTriggered.Type
