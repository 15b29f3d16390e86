/**
 * The one writer of the graph: entity, version and event in one statement.
 *
 * Flow: **graph** → outbox → dispatch → run → tool → task
 *
 * Users, agents, imports and approvals all come through `apply`. It holds the
 * wall that no door can forget: an agent's change is checked against what the
 * agent may do now, and one that is disabled, in suggest mode or has read something
 * untrusted changes nothing that no person approved. A change that changes
 * nothing makes no version and no event. Restoring, putting back and purging are for
 * people; no agent has a change for them.
 */
import { denies, deniesCascade } from "@tropism/domain/capability"
import type {
  Change,
  CreateObject,
  CreateRelationship,
  DeleteObject,
  DeleteRelationship,
  UpdateObject,
  UpdateRelationship
} from "@tropism/domain/change"
import type { ChangeType } from "@tropism/domain/graph"
import type { AgentId, GraphEventId, ObjectId, RelationshipId, UserId } from "@tropism/domain/ids"
import { findFault, findPropertiesFault, namelessFault, type Properties } from "@tropism/domain/json"
import { Context, Effect, Layer } from "effect"
import { SqlClient } from "effect/sql"
import { CrashPoint } from "../crash-point.ts"
import { orDie, type ProjectTransaction } from "../database/database.ts"
import { WakeUps } from "../outbox/wake-ups.ts"
import { Authorities, type Authority, explainDenial, explainTaint, inactiveSentence } from "./authority.ts"
import { makeObjectWrites } from "./object-writes.ts"
import { makePurging } from "./purging.ts"
import type { Replacement } from "./merging.ts"
import { type Applied, type Author, contentOf } from "./recording.ts"
import {
  type ChangeRefused,
  expectTwoEnds,
  expectVersion,
  keyTaken,
  noObject,
  noRelationship,
  refused,
  relationshipExists,
  wrongVersion
} from "./refused.ts"
import { makeRelationshipWrites } from "./relationship-writes.ts"
import { Relationships } from "./relationships.ts"
import { makeRestoring } from "./restoring.ts"
import { type ObjectRow, type RelationshipRow, toObject, toRelationship } from "./rows.ts"

type Write<A> = Effect.Effect<A, ChangeRefused, ProjectTransaction>

/** What goes back in one object or relationship. */
export type PutBack = Replacement & { readonly expectedVersion: number } & (
    | { readonly kind: "object"; readonly id: ObjectId }
    | { readonly kind: "relationship"; readonly id: RelationshipId }
  )

export class Gateway extends Context.Service<
  Gateway,
  {
    /** Makes a change in the caller's transaction, or refuses it; what is refused must not be committed. */
    readonly apply: (change: Change, author: Author) => Write<Applied>
    /** Brings a deleted object back as it was, with the relationships that were deleted with it. */
    readonly restoreObject: (id: ObjectId, author: Author) => Write<Applied>
    /** Brings a deleted object back and leaves to the caller what was deleted with it. */
    readonly restoreObjectAlone: (id: ObjectId, author: Author) => Write<Applied>
    readonly restoreRelationship: (id: RelationshipId, author: Author) => Write<Applied>
    /** Gives properties the values that they had before, whole and unmerged. */
    readonly putBack: (change: PutBack, author: Author) => Write<Applied>
    /** Removes an object for good, with all that was kept of it; deletes it first when it is there. */
    readonly purgeObject: (deletion: DeleteObject, author: Author, by: UserId) => Write<void>
    readonly purgeRelationship: (deletion: DeleteRelationship, author: Author, by: UserId) => Write<void>
  }
>()("@tropism/server/graph/Gateway") {
  static readonly layer = Layer.effect(
    Gateway,
    Effect.gen(function* () {
      const sql = yield* SqlClient.SqlClient
      const authorities = yield* Authorities
      const relationships = yield* Relationships
      const wakeUps = yield* WakeUps
      const objectWrites = yield* makeObjectWrites
      const relationshipWrites = yield* makeRelationshipWrites

      /** What the agent may do at this moment; undefined for whoever is no agent. */
      const authorityOf = Effect.fnUntraced(function* ({ actor, cause }: Author) {
        if (actor.actorType !== "agent") return undefined
        const authority =
          actor.actorId === null
            ? undefined
            : // What is approved is judged, and so held, before it is made.
              yield* authorities.of(actor.actorId as AgentId, cause.runId, cause.taskId !== null)
        if (authority?.isBacktest)
          return yield* refused(
            "backtest",
            "A backtest changes nothing, and nobody may approve what it suggests"
          )
        // What a person approves is that person's decision: it needs no agent that may still act.
        if (authority && (authority.isActive || isApproved(cause))) return authority
        return yield* refused("agentDisabled", inactiveSentence(authority))
      })

      const createObject = Effect.fnUntraced(function* (change: CreateObject, author: Author) {
        yield* permit(yield* authorityOf(author), change, [change.objectType], author)
        yield* valid(change.data)
        if (change.key !== null) {
          const fault = findFault(change.key)
          if (fault) return yield* refused("invalid", fault.message, "/key")
        }
        const created = yield* objectWrites.create(change.objectType, change.key, contentOf(change), author)
        if (created) return objectIs("created", created)
        return yield* keyTaken(
          change.objectType,
          change.key,
          yield* objectWrites.holderOf(change.objectType, change.key)
        )
      })

      const updateObject = Effect.fnUntraced(function* (change: UpdateObject, author: Author) {
        const authority = yield* authorityOf(author)
        if (authority) {
          const type = yield* objectWrites.typeOf(change.objectId)
          if (type === undefined) return yield* noObject(change.objectId)
          yield* permit(authority, change, [type], author)
        }
        yield* validPatch(change.data)
        const merged = yield* objectWrites.update(
          change.objectId,
          contentOf(change),
          change.expectedVersion,
          author
        )
        if (!merged) return yield* noObject(change.objectId)
        if (merged.verdict === "version")
          return yield* wrongVersion("object", change.expectedVersion, merged.row.version)
        return objectIs(merged.verdict === "updated" ? "updated" : "unchanged", merged)
      })

      /** Deletes an object and the relationships that end at it, each with its own event. */
      const deleteObject = Effect.fnUntraced(function* (change: DeleteObject, author: Author) {
        const authority = yield* authorityOf(author)
        const row = yield* objectWrites.lock(change.objectId, false)
        if (!row) return yield* noObject(change.objectId)
        if (authority) {
          yield* permit(authority, change, [row.type], author)
          const around = yield* relationships.kindsAround(change.objectId)
          const denial = deniesCascade(authority.capabilities, around)
          if (denial !== undefined) return yield* refused("notPermitted", explainDenial(authority, denial))
        }
        yield* expectVersion("object", change.expectedVersion, row.version)
        const around = yield* relationshipWrites.lockAround(change.objectId)
        yield* relationshipWrites.turnAll(around, "deleted", author)
        return objectIs("deleted", yield* objectWrites.remove(change.objectId, author))
      })

      const createRelationship = Effect.fnUntraced(function* (change: CreateRelationship, author: Author) {
        const authority = yield* authorityOf(author)
        const { fromId, toId, type } = change.relationship
        yield* expectTwoEnds(change.relationship)
        const ends = yield* relationshipWrites.holdEnds([fromId, toId])
        for (const [id, pointer] of [
          [fromId, "/fromId"],
          [toId, "/toId"]
        ] as const) {
          if (!ends.some((end) => end.id === id))
            return yield* refused("notFound", `There is no object ${id}`, pointer)
        }
        yield* permit(
          authority,
          change,
          ends.map((end) => end.type),
          author
        )
        yield* valid(change.data)
        const created = yield* relationshipWrites.create(change.relationship, contentOf(change), author)
        if (created) return relationshipIs("created", created)
        const [known] = yield* relationships.list({ type, fromId, toId }, undefined, 1)
        return yield* relationshipExists(change.relationship, known?.id)
      })

      /** Judges an agent by the types at both ends, which never change. */
      const permitAtEnds = Effect.fnUntraced(function* (
        change: UpdateRelationship | DeleteRelationship,
        author: Author
      ) {
        const authority = yield* authorityOf(author)
        if (!authority) return
        const found = yield* relationshipWrites.find(change.relationshipId, false)
        if (!found) return yield* noRelationship(change.relationshipId)
        yield* permit(authority, change, [found.fromType, found.toType], author)
      })

      const updateRelationship = Effect.fnUntraced(function* (change: UpdateRelationship, author: Author) {
        yield* permitAtEnds(change, author)
        yield* validPatch(change.data)
        const { relationshipId, expectedVersion } = change
        const merged = yield* relationshipWrites.update(
          relationshipId,
          contentOf(change),
          expectedVersion,
          author
        )
        if (!merged) return yield* noRelationship(relationshipId)
        if (merged.verdict === "version")
          return yield* wrongVersion("relationship", expectedVersion, merged.row.version)
        return relationshipIs(merged.verdict === "updated" ? "updated" : "unchanged", merged)
      })

      const deleteRelationship = Effect.fnUntraced(function* (change: DeleteRelationship, author: Author) {
        yield* permitAtEnds(change, author)
        const row = yield* relationshipWrites.lock(change.relationshipId, false)
        if (!row) return yield* noRelationship(change.relationshipId)
        yield* expectVersion("relationship", change.expectedVersion, row.version)
        const deleted = yield* relationshipWrites.turn(change.relationshipId, "deleted", author)
        return deleted ? relationshipIs("deleted", deleted) : yield* noRelationship(change.relationshipId)
      })

      const putBack = Effect.fnUntraced(function* (wanted: PutBack, author: Author) {
        const { expectedVersion } = wanted
        if (wanted.kind === "object") {
          const put = yield* objectWrites.replace(wanted.id, wanted, expectedVersion, author)
          if (!put) return yield* noObject(wanted.id)
          if (put.verdict === "version")
            return yield* wrongVersion(wanted.kind, expectedVersion, put.row.version)
          return objectIs(put.verdict === "updated" ? "updated" : "unchanged", put)
        }
        const put = yield* relationshipWrites.replace(wanted.id, wanted, expectedVersion, author)
        if (!put) return yield* noRelationship(wanted.id)
        if (put.verdict === "version")
          return yield* wrongVersion(wanted.kind, expectedVersion, put.row.version)
        return relationshipIs(put.verdict === "updated" ? "updated" : "unchanged", put)
      })

      const change = (wanted: Change, author: Author) => {
        switch (wanted.type) {
          case "create":
            return createObject(wanted, author)
          case "update":
            return updateObject(wanted, author)
          case "delete":
            return deleteObject(wanted, author)
          case "createRelationship":
            return createRelationship(wanted, author)
          case "updateRelationship":
            return updateRelationship(wanted, author)
          case "deleteRelationship":
            return deleteRelationship(wanted, author)
        }
      }

      /** What every write ends with. */
      const written = <A, E, R>(write: Effect.Effect<A, E, R>) =>
        write.pipe(
          Effect.tap(() => sql.afterCommit(wakeUps.signal("events"))),
          Effect.tap(() => CrashPoint.hit("graph.beforeCommit")),
          orDie
        )

      const apply = Effect.fn("Gateway.apply")((wanted: Change, author: Author) =>
        written(change(wanted, author) as Effect.Effect<Applied, ChangeRefused, ProjectTransaction>)
      )
      const restoring = makeRestoring(objectWrites, relationshipWrites)
      const purging = yield* makePurging(objectWrites, relationshipWrites)

      return Gateway.of({
        apply,
        restoreObject: Effect.fn("Gateway.restoreObject")((id, author) =>
          written(Effect.map(restoring.object(id, author), (done) => objectIs("created", done)))
        ),
        restoreObjectAlone: Effect.fn("Gateway.restoreObjectAlone")((id, author) =>
          written(Effect.map(restoring.object(id, author, true), (done) => objectIs("created", done)))
        ),
        putBack: Effect.fn("Gateway.putBack")((wanted, author) => written(putBack(wanted, author))),
        restoreRelationship: Effect.fn("Gateway.restoreRelationship")((id, author) =>
          written(Effect.map(restoring.relationship(id, author), (done) => relationshipIs("created", done)))
        ),
        purgeObject: Effect.fn("Gateway.purgeObject")((deletion, author, by) =>
          written(purging.object(deletion, by, apply(deletion, author)))
        ),
        purgeRelationship: Effect.fn("Gateway.purgeRelationship")((deletion, author, by) =>
          written(purging.relationship(deletion, by, apply(deletion, author)))
        )
      })
    })
  )
}

/** The agent's wall: capabilities as they are now, and no unapproved write in suggest mode. */
const permit = Effect.fnUntraced(function* (
  authority: Authority | undefined,
  change: Change,
  types: ReadonlyArray<string>,
  { cause }: Author
) {
  if (authority === undefined) return
  const denial = denies(authority.capabilities, change.type, types)
  if (denial !== undefined) return yield* refused("notPermitted", explainDenial(authority, denial))
  if (authority.executionMode === "suggest" && !isApproved(cause)) {
    const taint = explainTaint(authority)
    if (taint !== undefined) return yield* refused("untrusted", taint)
    return yield* refused(
      "notPermitted",
      explainDenial(authority, "The agent may only suggest changes, and no person approved this one")
    )
  }
})

const isApproved = ({ approvedBy, taskId }: Author["cause"]): boolean =>
  taskId !== null && approvedBy !== null

const valid = (properties: Properties) => {
  const fault = namelessFault(properties) ?? findPropertiesFault(properties)
  return fault ? Effect.fail(refused("invalid", fault.message, fault.pointer)) : Effect.void
}

/** A patch may be smaller or larger than what comes of it; its size is the result's affair. */
const validPatch = (patch: Properties) => {
  const fault = namelessFault(patch, true) ?? findFault(patch, "/properties")
  return fault ? Effect.fail(refused("invalid", fault.message, fault.pointer)) : Effect.void
}

/** What was done to an object; an event only where something was. */
const objectIs = (
  change: ChangeType | "unchanged",
  { row, eventId }: { readonly row: ObjectRow; readonly eventId: GraphEventId }
): Applied => ({
  change,
  eventId: change === "unchanged" ? null : eventId,
  entity: { kind: "object", object: toObject(row) }
})

const relationshipIs = (
  change: ChangeType | "unchanged",
  { row, eventId }: { readonly row: RelationshipRow; readonly eventId: GraphEventId }
): Applied => ({
  change,
  eventId: change === "unchanged" ? null : eventId,
  entity: { kind: "relationship", relationship: toRelationship(row) }
})
