/**
 * What a run had to do with the graph: what it read, what it wrote, and what it suggests.
 */
import { Schema } from "effect"
import { ChangeType, EntityType } from "./graph.ts"
import { GraphEventId, ObjectId, TaskId } from "./ids.ts"
import { TaskStatus } from "./task.ts"

/** Of each list the newest so many. */
export const runObjectBounds = { maxRows: 200 } as const

/** An object as it was when the run read it. */
export const ReadObject = Schema.Struct({
  objectId: ObjectId,
  type: Schema.String,
  /** As it is now; null where it has none, or is purged. */
  key: Schema.NullOr(Schema.String),
  version: Schema.Int,
  /** Whether the run made this version itself, and was answered so. */
  isOwn: Schema.Boolean
}).annotate({ identifier: "ReadObject" })

/** A change that the run made, or that was made on its suggestion. */
export const WrittenObject = Schema.Struct({
  eventId: GraphEventId,
  entityType: EntityType,
  entityId: Schema.String,
  objectType: Schema.String,
  key: Schema.NullOr(Schema.String),
  version: Schema.Int,
  change: ChangeType
}).annotate({ identifier: "WrittenObject" })

export const SuggestedTask = Schema.Struct({
  taskId: TaskId,
  number: Schema.Int,
  title: Schema.String,
  status: TaskStatus
}).annotate({ identifier: "SuggestedTask" })

export const RunObjects = Schema.Struct({
  /** What woke it and what its calls have shown it: of this a suggestion's evidence is what it had read by then. */
  read: Schema.Array(ReadObject),
  wrote: Schema.Array(WrittenObject),
  suggested: Schema.Array(SuggestedTask),
  /** Whether it, a run below it or an approved suggestion of theirs changed the graph: else there is nothing to undo. */
  changedGraph: Schema.Boolean
}).annotate({ identifier: "RunObjects" })
export type RunObjects = typeof RunObjects.Type
