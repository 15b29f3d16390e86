/**
 * From a change to the item of a statement, and from what the statement answers to what is told of the change.
 *
 * Flow: **graph** → outbox → dispatch → run → tool → task
 *
 * Pure, and the same for a change alone and for many in a batch.
 */
import type { Actor } from "@tropism/domain/actor"
import type {
  Change,
  CreateObject,
  CreateRelationship,
  DeleteObject,
  DeleteRelationship,
  UpdateObject,
  UpdateRelationship
} from "@tropism/domain/change"
import type { GraphEventId, ObjectId, RelationshipId } from "@tropism/domain/ids"
import { findFault, findPropertiesFault, namelessFault } from "@tropism/domain/json"
import { Effect } from "effect"
import { outpaced } from "../database/database.ts"
import type { Deleted, Deletion, Terms, Update, Updated } from "./entity-writes.ts"
import type { ObjectCreation } from "./object-writes.ts"
import { type Applied, type Author, contentOf, type Created, type EntityKind } from "./recording.ts"
import {
  ChangeRefused,
  keyTaken,
  noObject,
  noRelationship,
  refused,
  relationshipExists,
  wrongVersion
} from "./refused.ts"
import type { RelationshipCreation } from "./relationship-writes.ts"
import { type ObjectRow, type RelationshipRow, toObject, toRelationship } from "./rows.ts"

/** What of a change can never be kept; a patch may be smaller or larger than its result, whose size is judged with it. */
export const findChangeFault = (change: Change): ChangeRefused | undefined => {
  switch (change.type) {
    case "delete":
    case "deleteRelationship":
      return undefined
    case "update":
    case "updateRelationship":
      return refusedFor(namelessFault(change.data, true) ?? findFault(change.data, "/properties"))
    case "createRelationship":
      return refusedFor(namelessFault(change.data) ?? findPropertiesFault(change.data))
    case "create":
      return (
        refusedFor(namelessFault(change.data) ?? findPropertiesFault(change.data)) ??
        refusedFor(change.key === null ? undefined : findFault(change.key), "/key")
      )
  }
}

export const expectKeepable = (change: Change): Effect.Effect<void, ChangeRefused> => {
  const fault = findChangeFault(change)
  return fault === undefined ? Effect.void : Effect.fail(fault)
}

const refusedFor = (
  fault: { readonly message: string; readonly pointer: string } | undefined,
  pointer = fault?.pointer
): ChangeRefused | undefined => fault && refused("invalid", fault.message, pointer)

/** How a change went; undefined where only a transaction of its own can say so. */
export type Outcome = Applied | ChangeRefused | undefined

export const decided = (outcome: Outcome): Effect.Effect<Applied, ChangeRefused> => {
  if (outcome === undefined) return outpaced
  return outcome instanceof ChangeRefused ? Effect.fail(outcome) : Effect.succeed(outcome)
}

/** The terms of a change in a transaction of its own. */
export const alone = ({ cause }: Author): Terms => ({ cause, locked: "wait" })

/** A change and who makes it. */
export interface Authored<C extends Change = Change> {
  readonly change: C
  readonly actor: Actor
}

export const creationOf = ({ actor, change }: Authored<CreateObject>): ObjectCreation => ({
  type: change.objectType,
  key: change.key,
  content: contentOf(change),
  actor
})

export const relationshipCreationOf = ({
  actor,
  change
}: Authored<CreateRelationship>): RelationshipCreation => ({
  ...change.relationship,
  content: contentOf(change),
  actor
})

export const updateOf = ({ actor, change }: Authored<UpdateObject | UpdateRelationship>): Update => ({
  id: entityOf(change),
  content: contentOf(change),
  expectedVersion: change.expectedVersion,
  actor
})

export const deletionOf = ({ actor, change }: Authored<DeleteObject | DeleteRelationship>): Deletion => ({
  id: entityOf(change),
  expectedVersion: change.expectedVersion,
  actor
})

type OfEntity = UpdateObject | UpdateRelationship | DeleteObject | DeleteRelationship

export const entityOf = (change: OfEntity): ObjectId | RelationshipId =>
  "objectId" in change ? change.objectId : change.relationshipId

export const objectCreated = ({ key, objectType }: CreateObject, outcome: Created<ObjectRow>): Outcome => {
  switch (outcome.verdict) {
    case "created":
      return applied("object", "created", outcome)
    case "taken":
      return keyTaken(objectType, key, outcome.holderId)
    default:
      return undefined
  }
}

export const relationshipCreated = (
  { relationship }: CreateRelationship,
  outcome: Created<RelationshipRow>
): Outcome => {
  switch (outcome.verdict) {
    case "created":
      return applied("relationship", "created", outcome)
    case "taken":
      return relationshipExists(relationship, outcome.holderId)
    case "noEnd":
      return noEnd(relationship[outcome.end], outcome.end)
    default:
      return undefined
  }
}

export const updated = (
  kind: EntityKind,
  { expectedVersion, id }: Pick<Update, "id" | "expectedVersion">,
  outcome: Updated<ObjectRow | RelationshipRow>
): Outcome => {
  switch (outcome.verdict) {
    case "updated":
    case "unchanged":
      return applied(kind, outcome.verdict, outcome)
    case "version":
      return wrongVersion(kind, expectedVersion, outcome.row.version)
    case "missing":
      return missing(kind, id)
    default:
      return undefined
  }
}

export const deleted = (
  kind: EntityKind,
  { expectedVersion, id }: Pick<Deletion, "id" | "expectedVersion">,
  outcome: Deleted<ObjectRow | RelationshipRow>
): Outcome => {
  switch (outcome.verdict) {
    case "deleted":
      return applied(kind, "deleted", outcome)
    case "version":
      return wrongVersion(kind, expectedVersion, outcome.version)
    case "missing":
      return missing(kind, id)
    default:
      return undefined
  }
}

const missing = (kind: EntityKind, id: string): ChangeRefused =>
  kind === "object" ? noObject(id) : noRelationship(id)

export const noEnd = (id: string, end: "fromId" | "toId"): ChangeRefused =>
  refused("notFound", `There is no object ${id}`, `/${end}`)

/** What was done to an entity; an event only where something was. */
export const applied = (
  kind: EntityKind,
  change: Applied["change"],
  { eventId, row }: { readonly row: ObjectRow | RelationshipRow; readonly eventId: GraphEventId }
): Applied => ({
  change,
  eventId: change === "unchanged" ? null : eventId,
  entity:
    kind === "object"
      ? { kind, object: toObject(row as ObjectRow) }
      : { kind, relationship: toRelationship(row as RelationshipRow) }
})
