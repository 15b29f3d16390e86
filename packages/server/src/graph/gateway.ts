/**
 * The one writer of the graph: entity, version and event in one statement.
 *
 * **Invariant** Changes of users, agents, imports and approvals all pass through `apply`. It checks an agent's change
 * against the agent's current authority: an agent that is disabled, in suggest mode or tainted writes only what a person
 * approved. A change without effect makes no version and no event. Restore, put-back and purge are for people; agents
 * have no change for them.
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
import type { AgentId, ObjectId, ProjectId, RelationshipId, UserId } from "@tropism/domain/ids"
import { findPropertiesFault } from "@tropism/domain/json"
import { Context, Effect, Layer } from "effect"
import { SqlClient } from "effect/sql"
import { CrashPoint } from "../crash-point.ts"
import {
  onlyRow,
  orDie,
  retryTransaction,
  ProjectTransaction,
  brokenUniqueKey
} from "../database/database.ts"
import { Ids } from "../ids.ts"
import { graphLimits } from "../limits.ts"
import { Notifier } from "../outbox/notifier.ts"
import { Authorities, type Authority, explainDenial, explainTaint, inactiveSentence } from "./authority.ts"
import {
  type ChangeRefused,
  expectTwoEnds,
  expectVersion,
  noObject,
  noRelationship,
  refused,
  notDeleted
} from "./change-refused.ts"
import { makeObjectWrites, makeRelationshipWrites } from "./creations.ts"
import { makeEntityWrites, type Replacement, type Update } from "./entity-writes.ts"
import { type Applied, type Author, contentOf, type EntityKind, type Planned } from "./recording.ts"
import { Relationships } from "./relationships.ts"
import {
  alone,
  applied,
  creationOf,
  decided,
  deleted,
  deletionOf,
  expectKeepable,
  findChangeFault,
  noEnd,
  objectCreated,
  relationshipCreated,
  relationshipCreationOf,
  updated,
  makeWriteBatches
} from "./write-batches.ts"

type Write<A> = Effect.Effect<A, ChangeRefused, ProjectTransaction>

/** The restored content of one object or relationship. */
export type PutBack = Replacement & { readonly expectedVersion: number } & (
    | { readonly kind: "object"; readonly id: ObjectId }
    | { readonly kind: "relationship"; readonly id: RelationshipId }
  )

export class Gateway extends Context.Service<
  Gateway,
  {
    /** Makes a change in the caller's transaction or refuses it; the caller must not commit after a refusal. */
    readonly apply: (change: Change, author: Author) => Write<Applied>
    /**
     * Makes a person's change in the next batch of its project and returns after the commit. Returns undefined when nothing was
     * written and the change needs its own transaction: another transaction holds a row, or the change needs more writes or checks.
     */
    readonly submit: (
      projectId: ProjectId,
      change: Change,
      by: UserId
    ) => Effect.Effect<Applied | undefined, ChangeRefused>
    /** Restores a deleted object and the relationships that were deleted with it. */
    readonly restoreObject: (id: ObjectId, author: Author) => Write<Applied>
    /** Restores a deleted object; the caller restores the relationships. */
    readonly restoreObjectAlone: (id: ObjectId, author: Author) => Write<Applied>
    readonly restoreRelationship: (id: RelationshipId, author: Author) => Write<Applied>
    /** Replaces properties with their earlier values, without merging. */
    readonly putBack: (change: PutBack, author: Author) => Write<Applied>
    /** Purges an object and its history; deletes it first when it is live. */
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
      const notifier = yield* Notifier
      const entityWrites = makeEntityWrites(sql, yield* Ids)
      const objectWrites = yield* makeObjectWrites
      const relationshipWrites = yield* makeRelationshipWrites

      /** Returns the agent's current authority; undefined for other actors. */
      const authorityOf = Effect.fnUntraced(function* ({ actor, cause }: Author) {
        if (actor.actorType !== "agent") return undefined
        const authority =
          actor.actorId === null
            ? undefined
            : // The approval judged and locked its target before this write.
              yield* authorities.of(actor.actorId as AgentId, cause.runId, cause.taskId !== null)
        if (authority?.isBacktest)
          return yield* refused(
            "backtest",
            "A backtest changes nothing, and nobody may approve what it suggests"
          )
        // An approved change is the person's decision, so the agent need not be active any more.
        if (authority && (authority.isActive || isApproved(cause))) return authority
        return yield* refused("agentDisabled", inactiveSentence(authority))
      })

      /** Runs a statement of one item; repeats it while the outcome is undecided, because the row it waited for has changed. */
      const one = Effect.fnUntraced(function* <A extends { readonly verdict: string }, R>(
        plan: Effect.Effect<Planned<A>, never, R>
      ) {
        for (let tries = 1; tries <= graphLimits.undecidedTries; tries++) {
          const { outcomes, statement } = yield* plan
          const outcome = yield* onlyRow(outcomes(yield* statement))
          if (outcome.verdict !== "undecided") return outcome
        }
        return yield* retryTransaction
      })

      const createObject = Effect.fnUntraced(function* (change: CreateObject, author: Author) {
        yield* permit(yield* authorityOf(author), change, [change.objectType], author)
        yield* expectKeepable(change)
        return yield* decided(
          objectCreated(
            change,
            yield* one(objectWrites.create([creationOf({ change, actor: author.actor })], alone(author)))
          )
        )
      })

      const update = Effect.fnUntraced(function* (
        kind: EntityKind,
        id: ObjectId | RelationshipId,
        content: Update["content"],
        expectedVersion: number | undefined,
        author: Author
      ) {
        const wanted: Update = { id, content, expectedVersion, actor: author.actor }
        const look = (isInspected: boolean) =>
          one(entityWrites.update(kind, [wanted], alone(author), isInspected))
        const first = yield* look(false)
        if (first.verdict !== "inspect") return yield* decided(updated(kind, wanted, first))
        // Neither kind of update adds depth. Only the size and the number of keys can exceed their bounds, and only in a large text.
        const fault = findPropertiesFault(first.row.properties)
        if (fault) return yield* refused("invalid", fault.message, fault.pointer)
        // The row has been locked since, so this is the result that was inspected.
        return yield* decided(updated(kind, wanted, yield* look(true)))
      })

      const updateObject = Effect.fnUntraced(function* (change: UpdateObject, author: Author) {
        const authority = yield* authorityOf(author)
        if (authority) {
          const type = yield* objectWrites.typeOf(change.objectId)
          if (type === undefined) return yield* noObject(change.objectId)
          yield* permit(authority, change, [type], author)
        }
        yield* expectKeepable(change)
        return yield* update("object", change.objectId, contentOf(change), change.expectedVersion, author)
      })

      /** Deletes an object and its relationships, each with its own event. */
      const deleteObject = Effect.fnUntraced(function* (change: DeleteObject, author: Author) {
        const authority = yield* authorityOf(author)
        const wanted = deletionOf({ change, actor: author.actor })
        if (authority === undefined) {
          const outcome = yield* one(entityWrites.remove("object", [wanted], alone(author)))
          if (outcome.verdict !== "related") return yield* decided(deleted("object", wanted, outcome))
        }
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
        return yield* decided(
          deleted("object", wanted, yield* one(entityWrites.remove("object", [wanted], alone(author))))
        )
      })

      const createRelationship = Effect.fnUntraced(function* (change: CreateRelationship, author: Author) {
        const authority = yield* authorityOf(author)
        const { relationship } = change
        yield* expectTwoEnds(relationship)
        const fault = findChangeFault(change)
        // An agent is judged by the types of both ends. A fault in the content is reported only when both ends exist.
        if (authority || fault) {
          const ends = yield* relationshipWrites.holdEnds([relationship.fromId, relationship.toId])
          for (const end of ["fromId", "toId"] as const)
            if (!ends.some(({ id }) => id === relationship[end])) return yield* noEnd(relationship[end], end)
          const types = ends.map((end) => end.type)
          yield* permit(authority, change, types, author)
          yield* expectKeepable(change)
        }
        const wanted = relationshipCreationOf({ change, actor: author.actor })
        return yield* decided(
          relationshipCreated(change, yield* one(relationshipWrites.create([wanted], alone(author))))
        )
      })

      /** Checks an agent's authority by the types at both ends, which never change. */
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
        yield* expectKeepable(change)
        const { expectedVersion, relationshipId } = change
        return yield* update("relationship", relationshipId, contentOf(change), expectedVersion, author)
      })

      const deleteRelationship = Effect.fnUntraced(function* (change: DeleteRelationship, author: Author) {
        yield* permitAtEnds(change, author)
        const wanted = deletionOf({ change, actor: author.actor })
        const outcome = yield* one(entityWrites.remove("relationship", [wanted], alone(author)))
        return yield* decided(deleted("relationship", wanted, outcome))
      })

      const putBack = ({ expectedVersion, id, kind, ...content }: PutBack, author: Author) =>
        update(kind, id, content, expectedVersion, author)

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

      /** Adds the steps that end every write. */
      const written = <A, E, R>(write: Effect.Effect<A, E, R>) =>
        write.pipe(
          Effect.tap(() => sql.afterCommit(notifier.signal("events"))),
          Effect.tap(() => CrashPoint.hit("graph.beforeCommit")),
          orDie
        )

      const apply = Effect.fn("Gateway.apply")((wanted: Change, author: Author) =>
        written(change(wanted, author) as Effect.Effect<Applied, ChangeRefused, ProjectTransaction>)
      )
      const restoring = makeRestoring(objectWrites, relationshipWrites)
      const purging = yield* makePurging(objectWrites, relationshipWrites)
      const submit = yield* makeWriteBatches(objectWrites, relationshipWrites, entityWrites)

      return Gateway.of({
        apply,
        submit,
        restoreObject: Effect.fn("Gateway.restoreObject")((id, author) =>
          written(Effect.map(restoring.object(id, author), (done) => applied("object", "created", done)))
        ),
        restoreObjectAlone: Effect.fn("Gateway.restoreObjectAlone")((id, author) =>
          written(
            Effect.map(restoring.object(id, author, true), (done) => applied("object", "created", done))
          )
        ),
        putBack: Effect.fn("Gateway.putBack")((wanted, author) => written(putBack(wanted, author))),
        restoreRelationship: Effect.fn("Gateway.restoreRelationship")((id, author) =>
          written(
            Effect.map(restoring.relationship(id, author), (done) => applied("relationship", "created", done))
          )
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

/** Checks an agent's capabilities and refuses an unapproved write in suggest mode. */
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

// Purges deleted entities; only an explicit request by a person reaches this.
//
// The server's database role has no DELETE right on the graph. Functions of the migrations have it, for deleted rows only, and
// record who purged. The purge compares the expected version under its own lock.

const makePurging = Effect.fnUntraced(function* (
  objects: Effect.Success<typeof makeObjectWrites>,
  relationships: Effect.Success<typeof makeRelationshipWrites>
) {
  const sql = yield* SqlClient.SqlClient
  const ids = yield* Ids

  /**
   * Waits for the dispatcher, so that what it has read is in the log and is purged too. Must precede every other lock, or the two
   * would deadlock.
   */
  const holdFeed = Effect.gen(function* () {
    const { projectId } = yield* ProjectTransaction
    yield* sql`select from kb.feeds where project_id = ${projectId} for share`
  })

  const object = Effect.fnUntraced(function* <A, R>(
    { objectId: id, expectedVersion }: DeleteObject,
    by: UserId,
    deletion: Effect.Effect<A, ChangeRefused, R>
  ) {
    yield* holdFeed
    const isGone = yield* wasGone(deletion)
    if (isGone) {
      const row = yield* objects.lock(id, true)
      if (!row) return yield* noObject(id)
      yield* expectVersion("object", expectedVersion, row.version)
    }
    const { purged } = yield* Effect.flatMap(
      sql<{
        readonly purged: boolean
      }>`select kb.purge_object(${yield* ids.next}::uuid, ${id}::uuid, ${by}) as purged`,
      onlyRow
    )
    if (!purged) return yield* noObject(id)
  })

  const relationship = Effect.fnUntraced(function* <A, R>(
    { relationshipId: id, expectedVersion }: DeleteRelationship,
    by: UserId,
    deletion: Effect.Effect<A, ChangeRefused, R>
  ) {
    yield* holdFeed
    const isGone = yield* wasGone(deletion)
    if (isGone) {
      const row = yield* relationships.lock(id, true)
      if (!row) return yield* noRelationship(id)
      yield* expectVersion("relationship", expectedVersion, row.version)
    }
    const { purged } = yield* Effect.flatMap(
      sql<{
        readonly purged: boolean
      }>`select kb.purge_relationship(${yield* ids.next}::uuid, ${id}::uuid, ${by}) as purged`,
      onlyRow
    )
    if (!purged) return yield* noRelationship(id)
  })

  return { object, relationship }
})

/** Deletes the entity at the expected version; true when it is already gone. */
const wasGone = <A, R>(deletion: Effect.Effect<A, ChangeRefused, R>) =>
  Effect.catchIf(
    Effect.map(deletion, () => false),
    (refusal: ChangeRefused) => refusal.reason === "notFound",
    () => Effect.succeed(true)
  )

// Restores a deleted entity as a new version with the content of the last one.
//
// Its event is `created`, because consumers of the feed have dropped the entity. Locks are taken as in a deletion: the object
// before its relationships.

const makeRestoring = (
  objects: Effect.Success<typeof makeObjectWrites>,
  relationships: Effect.Success<typeof makeRelationshipWrites>
) => {
  const object = Effect.fnUntraced(function* (id: ObjectId, author: Author, isAlone = false) {
    const deleted = yield* objects.lock(id, true)
    if (!deleted) return yield* notDeleted("object", id, "/objectId")
    const fallen = isAlone ? [] : yield* relationships.lockFallen(id)
    const restored = yield* refuseTaken(
      objects.restore(id, author),
      `Another ${deleted.type} has the key ${deleted.key} now: delete it, or change this one's place`
    )
    yield* refuseTaken(
      relationships.turnAll(fallen, "created", author),
      "A relationship like one of this object's was made meanwhile"
    )
    return restored
  })

  const relationship = Effect.fnUntraced(function* (id: RelationshipId, author: Author) {
    const deleted = yield* relationships.find(id, true)
    if (!deleted) return yield* notDeleted("relationship", id, "/relationshipId")
    const { fromId, toId, type } = deleted
    const ends = yield* relationships.holdEnds([fromId, toId])
    const missing = [fromId, toId].find((end) => !ends.some((one) => one.id === end))
    if (missing !== undefined)
      return yield* refused("state", `Its object ${missing} is deleted: restore that first`)
    if (!(yield* relationships.lock(id, true)))
      return yield* notDeleted("relationship", id, "/relationshipId")
    const restored = yield* refuseTaken(
      relationships.turn(id, "created", author),
      `There is already a ${type} from ${fromId} to ${toId}`
    )
    return restored ?? (yield* notDeleted("relationship", id, "/relationshipId"))
  })

  return { object, relationship }
}

/** Turns a unique violation into a refusal. */
const refuseTaken = <A, E, R>(write: Effect.Effect<A, E, R>, sentence: string) =>
  Effect.catchIf(
    write,
    (error): error is E => brokenUniqueKey(error as never) !== undefined,
    (error) =>
      Effect.fail(
        refused(
          brokenUniqueKey(error as never) === "graph_objects_key" ? "keyTaken" : "relationshipExists",
          sentence
        )
      )
  )
