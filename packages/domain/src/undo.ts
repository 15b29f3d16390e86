/**
 * Taking back what a run, a version of an agent or a chain did to the graph.
 *
 * An undo is a task: a plan with an item for each object and relationship that
 * the cause touched, which a person reads, approves or rejects. The plan names
 * versions and keeps no values, so it stays true and survives no purge.
 */
import { Schema } from "effect"
import { EntityType } from "./graph.ts"
import { AgentId, GraphEventId, RunId, UserId } from "./ids.ts"

/** Whose work is taken back: a run's and that of all it spawned, that of an agent's version, or all that agents did in a chain. */
export const UndoCause = Schema.Union([
  Schema.Struct({ type: Schema.Literal("run"), runId: RunId }),
  Schema.Struct({ type: Schema.Literal("agentVersion"), agentId: AgentId, version: Schema.Int }),
  Schema.Struct({ type: Schema.Literal("chain"), rootEventId: GraphEventId })
]).annotate({ identifier: "UndoCause" })
export type UndoCause = typeof UndoCause.Type

/** What one text names a cause by; no two causes have the same. */
export const causeKey = (cause: UndoCause): string => {
  switch (cause.type) {
    case "run":
      return `undo run ${cause.runId}`
    case "agentVersion":
      return `undo agent ${cause.agentId} ${cause.version}`
    case "chain":
      return `undo chain ${cause.rootEventId}`
  }
}

/** How many objects and relationships one undo may take back. */
export const undoBounds = { maxEntities: 1_000 } as const

/** `ready` is undone by an approval; `conflict` is kept, for somebody else came after; of `unneeded` nothing is left. */
export const UndoStatus = Schema.Literals(["ready", "conflict", "unneeded"])
export type UndoStatus = typeof UndoStatus.Type

export const UndoAction = Schema.Literals(["delete", "restore", "update", "none"])
export type UndoAction = typeof UndoAction.Type

/** One property that the cause set. */
export const UndoneProperty = Schema.Struct({
  property: Schema.String,
  status: UndoStatus,
  /** The value when the plan was made; absent when there was none, or it was purged. */
  now: Schema.optionalKey(Schema.Json),
  /** The value before the cause set it; absent when there was none, or it was purged. */
  back: Schema.optionalKey(Schema.Json),
  /** True when the value that was before came from an untrusted source. */
  untrusted: Schema.optionalKey(Schema.Boolean)
}).annotate({ identifier: "UndoneProperty" })
export type UndoneProperty = typeof UndoneProperty.Type

/** What becomes of one object or relationship. */
export const UndoItem = Schema.Struct({
  /** The id of the object or relationship. */
  id: Schema.String,
  /** The item's place in the plan, from 1 on. */
  place: Schema.Int,
  entityType: EntityType,
  objectType: Schema.String,
  key: Schema.NullOr(Schema.String),
  /** What undoing it is; it is done where the status is `ready`. */
  action: UndoAction,
  status: UndoStatus,
  reason: Schema.String,
  /** The version for which this was planned. */
  version: Schema.Int,
  /** What goes back; empty where the whole is deleted. */
  properties: Schema.Array(UndoneProperty),
  /** Whether the person who approved the others left this one out. */
  leftOut: Schema.Boolean
}).annotate({ identifier: "UndoItem" })
export type UndoItem = typeof UndoItem.Type

/** What is asked of a person, in numbers; the items are a list of their own. */
export const UndoPayload = Schema.Struct({
  cause: UndoCause,
  requestedBy: UserId,
  counts: Schema.Struct({
    ready: Schema.Int,
    conflicts: Schema.Int,
    unneeded: Schema.Int,
    /** Properties in which a later change of somebody else stands, also of items that are ready. */
    kept: Schema.Int,
    /** Suggestions of the cause that wait; they expire with the approval. */
    suggestions: Schema.Int
  }),
  /** Whose changes these are; none of them is woken by the undo. */
  agents: Schema.Array(Schema.Struct({ id: AgentId, name: Schema.String }))
}).annotate({ identifier: "UndoPayload" })
export type UndoPayload = typeof UndoPayload.Type

/** What an agent's version did of one kind, of which something was taken back. */
export const Reverted = Schema.Struct({
  agentId: AgentId,
  agentVersion: Schema.Int,
  entityType: EntityType,
  objectType: Schema.String,
  operation: Schema.Literals(["created", "updated", "deleted"]),
  /** Of how many objects or relationships. */
  count: Schema.Int
}).annotate({ identifier: "Reverted" })
export type Reverted = typeof Reverted.Type

/** What an approval did. */
export const UndoOutcome = Schema.Struct({
  undone: Schema.Int,
  leftOut: Schema.Int,
  expiredSuggestions: Schema.Int,
  reverted: Schema.Array(Reverted)
}).annotate({ identifier: "UndoOutcome" })
export type UndoOutcome = typeof UndoOutcome.Type
