/**
 * The shared knowledge: objects, relationships, and the events of both.
 *
 * An object's `id` never changes and its `version` is a number that grows by
 * one with each change. What is deleted keeps its history.
 */
import { Schema } from "effect"
import { ActorType } from "./actor.ts"
import {
  GraphEventId,
  ObjectId,
  RelationshipId,
  RunId,
  TaskId,
  Timestamp,
  ToolCallId,
  UserId
} from "./ids.ts"
import { Properties } from "./json.ts"

/** The name of a kind of object, e.g. `Package`. */
export const ObjectType = Schema.String.check(
  Schema.isPattern(/^[A-Za-z][A-Za-z0-9_.-]{0,99}$/, {
    message: "A type begins with a letter and has at most 100 letters, digits, dots, dashes or underscores"
  })
)

/** A name that finds an object again, unique per type: e.g. `node_modules/effect`. */
export const ObjectKey = Schema.String.check(Schema.isBetweenLength(1, 500))

export const GraphObject = Schema.Struct({
  id: ObjectId,
  type: Schema.String,
  key: Schema.NullOr(Schema.String),
  properties: Properties,
  version: Schema.Int,
  actorType: ActorType,
  actorId: Schema.NullOr(Schema.String),
  createdAt: Timestamp,
  updatedAt: Timestamp
}).annotate({ identifier: "GraphObject" })
export type GraphObject = typeof GraphObject.Type

export const Relationship = Schema.Struct({
  id: RelationshipId,
  type: Schema.String,
  fromId: ObjectId,
  toId: ObjectId,
  properties: Properties,
  version: Schema.Int,
  actorType: ActorType,
  actorId: Schema.NullOr(Schema.String),
  createdAt: Timestamp,
  updatedAt: Timestamp
}).annotate({ identifier: "Relationship" })
export type Relationship = typeof Relationship.Type

export const ChangeType = Schema.Literals(["created", "updated", "deleted"])
export type ChangeType = typeof ChangeType.Type

/** An agent that an event was meant for and did not wake: by which rule, and the sentence that says why. */
export const NotedRefusal = Schema.Struct({
  agentId: Schema.String,
  rule: Schema.optionalKey(Schema.String),
  reason: Schema.String
}).annotate({ identifier: "NotedRefusal" })
export type NotedRefusal = typeof NotedRefusal.Type

/** What was committed to the graph, with who caused it (S001-R08…R10). */
export const GraphEvent = Schema.Struct({
  id: GraphEventId,
  /** The event's place in its project's feed, 1, 2, 3 …; null until the feed has it. */
  position: Schema.NullOr(Schema.Int),
  entityType: Schema.Literals(["graphObject", "relationship"]),
  /** The type of the object or relationship. */
  objectType: Schema.String,
  /** The id of the object or relationship. */
  entityId: Schema.String,
  version: Schema.Int,
  type: ChangeType,
  changedProperties: Schema.Array(Schema.String),
  /** The state after the change; for `deleted`, the last state before it. */
  snapshot: Schema.Json,
  actorType: ActorType,
  actorId: Schema.NullOr(Schema.String),
  approvedBy: Schema.NullOr(UserId),
  runId: Schema.NullOr(RunId),
  toolCallId: Schema.NullOr(ToolCallId),
  taskId: Schema.NullOr(TaskId),
  rootEventId: GraphEventId,
  depth: Schema.Int,
  /** Agents that this event was meant for and did not wake, with the reason. */
  refusals: Schema.Array(NotedRefusal),
  createdAt: Timestamp
}).annotate({ identifier: "GraphEvent" })
export type GraphEvent = typeof GraphEvent.Type

/** One version of an object, kept for ever: the version's state and who made it. */
export const ObjectVersion = Schema.Struct({
  version: Schema.Int,
  type: ChangeType,
  properties: Properties,
  actorType: ActorType,
  actorId: Schema.NullOr(Schema.String),
  approvedBy: Schema.NullOr(UserId),
  runId: Schema.NullOr(RunId),
  toolCallId: Schema.NullOr(ToolCallId),
  taskId: Schema.NullOr(TaskId),
  eventId: GraphEventId,
  createdAt: Timestamp
}).annotate({ identifier: "ObjectVersion" })
export type ObjectVersion = typeof ObjectVersion.Type
