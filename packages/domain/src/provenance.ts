/**
 * Why a property has its value: which event set it, who, through what, and from where.
 *
 * The chain begins with the event that set the value and goes back, event by
 * event and run by run, to the root: what a person, a schedule or an import did.
 */
import { Schema } from "effect"
import { ActorType } from "./actor.ts"
import { ChangeType, EntityType } from "./graph.ts"
import {
  AgentId,
  GraphEventId,
  ObjectId,
  PromotionId,
  RunId,
  TaskId,
  Timestamp,
  ToolCallId,
  UserId
} from "./ids.ts"
import { TaskType } from "./task.ts"

/** Who caused an event; `agentName` is the agent's name as it is now. */
const actorFields = {
  actorType: ActorType,
  actorId: Schema.NullOr(Schema.String),
  agentName: Schema.NullOr(Schema.String)
}

/** One event on the way to the root, with the run that caused it. */
export const ProvenanceHop = Schema.Struct({
  eventId: GraphEventId,
  /** The event's place in the feed. */
  position: Schema.NullOr(Schema.Int),
  type: ChangeType,
  entityType: EntityType,
  objectType: Schema.String,
  entityId: Schema.String,
  /** The key of the object that it happened to, when it has one. */
  key: Schema.NullOr(Schema.String),
  version: Schema.Int,
  ...actorFields,
  approvedBy: Schema.NullOr(UserId),
  createdAt: Timestamp,
  run: Schema.NullOr(
    Schema.Struct({
      id: RunId,
      agentId: AgentId,
      agentName: Schema.String,
      agentVersion: Schema.Int,
      model: Schema.NullOr(Schema.String),
      /** What woke the run: the next hop for `reaction`; else the chain ends here. */
      trigger: Schema.String,
      triggeredBy: Schema.NullOr(UserId)
    })
  )
}).annotate({ identifier: "ProvenanceHop" })
export type ProvenanceHop = typeof ProvenanceHop.Type

/** What the model said when it asked for the change. */
export const ProvenanceToolCall = Schema.Struct({
  id: ToolCallId,
  tool: Schema.String,
  reasoning: Schema.NullOr(Schema.String),
  confidence: Schema.NullOr(Schema.Finite),
  /** The promotion that let a hybrid agent make the change without asking; null where none was needed. */
  promotionId: Schema.NullOr(PromotionId)
})

export const PropertyProvenance = Schema.Struct({
  property: Schema.String,
  /** The value now; null when `removed`. */
  value: Schema.Json,
  /** True for a property that was asked for by name and has been removed. */
  removed: Schema.Boolean,
  /** The version that gave the property this value. */
  version: Schema.Int,
  /** What that version said it was made by. */
  ...actorFields,
  approvedBy: Schema.NullOr(UserId),
  toolCall: Schema.NullOr(ProvenanceToolCall),
  /** The suggestion that a person decided, or the undo that brought the value back. */
  task: Schema.NullOr(
    Schema.Struct({ id: TaskId, number: Schema.Int, type: TaskType, title: Schema.String })
  ),
  /** From the event that set the value back to the root. */
  chain: Schema.Array(ProvenanceHop),
  rootEventId: GraphEventId,
  createdAt: Timestamp
}).annotate({ identifier: "PropertyProvenance" })
export type PropertyProvenance = typeof PropertyProvenance.Type

export const Provenance = Schema.Struct({
  objectId: ObjectId,
  type: Schema.String,
  key: Schema.NullOr(Schema.String),
  version: Schema.Int,
  /** Who deleted the object, whose last values these are; null for one that is there. */
  deleted: Schema.NullOr(
    Schema.Struct({
      eventId: GraphEventId,
      ...actorFields,
      approvedBy: Schema.NullOr(UserId),
      runId: Schema.NullOr(RunId),
      createdAt: Timestamp
    })
  ),
  properties: Schema.Array(PropertyProvenance)
}).annotate({ identifier: "Provenance" })
export type Provenance = typeof Provenance.Type
