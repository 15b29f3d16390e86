/**
 * Says what became of the graph under a suggestion, and what a person can do about it.
 *
 * Flow: graph → outbox → dispatch → run → tool → **task**
 */
import type { Change } from "@tropism/domain/change"
import { placeText } from "@tropism/domain/property-filter"
import { AddedRelationship, PropertyConflict, type Standing } from "@tropism/domain/staleness"
import { shortened } from "@tropism/domain/text-beginning"
import { Effect, Schema } from "effect"
import { SqlClient } from "effect/sql"
import { ProjectTransaction } from "../database/database.ts"
import { taskLimits } from "./task-limits.ts"

/** What an approval met that it would have overwritten. */
export const Outdated = Schema.Struct({
  conflicts: Schema.Array(PropertyConflict),
  /** The version of the target now; null when there is none. */
  current: Schema.NullOr(Schema.Int),
  /** Whether the target, or an end of a new relationship, is no longer there. */
  gone: Schema.Boolean,
  /** Relationships that would fall with an object and that somebody else made since. */
  relationships: Schema.Array(AddedRelationship)
})
export type Outdated = typeof Outdated.Type

export const outdatedOf = (
  { added, current, isGone }: Standing,
  conflicts: ReadonlyArray<PropertyConflict>
): Outdated => ({
  conflicts,
  current: current?.version ?? null,
  gone: isGone,
  relationships: added
})

/** Asks whether something that a change needs is gone for good. */
export const makePurgedQuestion = Effect.gen(function* () {
  const sql = yield* SqlClient.SqlClient
  return Effect.fnUntraced(function* (change: Change) {
    const { projectId } = yield* ProjectTransaction
    const hasPurged = (ids: ReadonlyArray<string>) => sql`
      select 1 from kb.graph_objects where id = any(${ids}::uuid[]) and project_id = ${projectId} and purged_at is not null`
    switch (change.type) {
      case "create":
        return false
      case "update":
      case "delete":
        return (yield* hasPurged([change.objectId])).length > 0
      case "createRelationship":
        return (yield* hasPurged([change.relationship.fromId, change.relationship.toId])).length > 0
      default:
        // A purged relationship leaves no row.
        return (
          (yield* sql`
            select 1 from kb.graph_relationships where id = ${change.relationshipId} and project_id = ${projectId}`)
            .length === 0
        )
    }
  })
})

/** What happened, and what to do. */
export const outdatedSentence = (
  change: Change,
  { conflicts, current, gone, relationships }: Outdated,
  isPurged: boolean
): string => {
  const what = change.type.endsWith("Relationship") ? "relationship" : "object"
  if (gone) {
    const [subject, lost] =
      change.type === "createRelationship"
        ? ["An object that it would connect", "object"]
        : [`The ${what}`, what]
    return isPurged
      ? `${subject} was purged after the agent suggested this and cannot come back: reject it`
      : `${subject} was deleted after the agent suggested this: reject it, or restore the ${lost}`
  }
  if (relationships.length > 0)
    return `Since the agent suggested to delete the object, ${relationships.length === 1 ? "a relationship was made that ends at it" : `${relationships.length} relationships were made that end at it`} and would go with it: ${list(relationships.map(({ type }) => type))}. Reject it, or delete the object yourself`
  const places = list(conflicts.map(({ pointer }) => placeText(pointer)))
  if (change.type === "delete" || change.type === "deleteRelationship")
    return `The ${what} changed after the agent suggested to delete it: ${places}. Reject it, or delete the ${what} yourself`
  return `The ${what} changed after the agent suggested this, in what it would write: ${places}. Reject it, or edit it for how the ${what} is now, at version ${current}, before you approve it`
}

const list = (names: ReadonlyArray<string>): string => shortened(names.join(", "), taskLimits.listedMaxChars)
