/**
 * The shared knowledge: objects, relationships, and the events of both.
 *
 * An object's `id` never changes and its `version` is a number that grows by
 * one with each change. What is deleted keeps its history.
 */
import { Schema } from "effect"
import { ActorType } from "./actor.ts"
import {
  AgentId,
  GraphEventId,
  ObjectId,
  PurgeId,
  RelationshipId,
  RunId,
  TaskId,
  Timestamp,
  ToolCallId,
  UserId
} from "./ids.ts"
import { isJsonObject, Properties } from "./json.ts"
import { Untrusted } from "./untrusted.ts"

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
  /** The properties whose values come from untrusted sources. */
  untrusted: Untrusted,
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
  /** The properties whose values come from untrusted sources. */
  untrusted: Untrusted,
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

export const EntityType = Schema.Literals(["graphObject", "relationship"])
export type EntityType = typeof EntityType.Type

/** What was committed to the graph, with who caused it (S001-R08…R10). */
export const GraphEvent = Schema.Struct({
  id: GraphEventId,
  /** The event's place in its project's feed, 1, 2, 3 …; null until the feed has it. */
  position: Schema.NullOr(Schema.Int),
  entityType: EntityType,
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
  /** The agents whose changes an undo took back by this; they are not woken by it. Absent is none. */
  undoes: Schema.optionalKey(Schema.Array(AgentId)),
  /** Agents that this event was meant for and did not wake, with the reason. */
  refusals: Schema.Array(NotedRefusal),
  createdAt: Timestamp
}).annotate({ identifier: "GraphEvent" })
export type GraphEvent = typeof GraphEvent.Type

/** What every version says of its own making. */
const versionFields = {
  version: Schema.Int,
  type: ChangeType,
  properties: Properties,
  /** The properties whose values come from untrusted sources. */
  untrusted: Untrusted,
  actorType: ActorType,
  actorId: Schema.NullOr(Schema.String),
  approvedBy: Schema.NullOr(UserId),
  runId: Schema.NullOr(RunId),
  toolCallId: Schema.NullOr(ToolCallId),
  taskId: Schema.NullOr(TaskId),
  eventId: GraphEventId,
  createdAt: Timestamp
}

/** One version of an object, kept until it is purged: the version's state and who made it. */
export const ObjectVersion = Schema.Struct(versionFields).annotate({ identifier: "ObjectVersion" })
export type ObjectVersion = typeof ObjectVersion.Type

/** One version of a relationship, kept like an object's. */
export const RelationshipVersion = Schema.Struct(versionFields).annotate({
  identifier: "RelationshipVersion"
})
export type RelationshipVersion = typeof RelationshipVersion.Type

/** Which relationships are followed from an object: those that begin there, that end there, or all. */
export const Direction = Schema.Literals(["out", "in", "both"])
export type Direction = typeof Direction.Type

/** How far relationships may be followed at once. */
export const neighborBounds = { maxDepth: 3 } as const

/** What lies around an object, itself left out. */
export const Neighborhood = Schema.Struct({
  /** Nearest first; `distance` is the number of relationships to go. */
  objects: Schema.Array(Schema.Struct({ ...GraphObject.fields, distance: Schema.Int })),
  relationships: Schema.Array(Relationship),
  /** True when there is more than was asked for, or may be: the nearest are here. */
  truncated: Schema.Boolean
}).annotate({ identifier: "Neighborhood" })
export type Neighborhood = typeof Neighborhood.Type

/** What is left of a purged object or relationship: that it was, and who removed it. */
export const Purge = Schema.Struct({
  id: PurgeId,
  entityType: EntityType,
  entityId: Schema.String,
  objectType: Schema.String,
  purgedBy: Schema.NullOr(UserId),
  /** How much went with it. */
  versions: Schema.Int,
  relationships: Schema.Int,
  purgedAt: Timestamp
}).annotate({ identifier: "Purge" })
export type Purge = typeof Purge.Type

/** Whether the object or relationship of an event was purged; the event lost its content then. */
export const isPurged = ({ snapshot }: Pick<GraphEvent, "snapshot">): boolean =>
  isJsonObject(snapshot) && snapshot["purged"] === true
