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
import { type Actor, direct } from "@tropism/domain/actor"
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
import type { AgentId, GraphEventId, ObjectId, ProjectId, RelationshipId, UserId } from "@tropism/domain/ids"
import { findFault, findPropertiesFault, namelessFault } from "@tropism/domain/json"
import { Array as Arr, Cause, Context, Effect, Layer } from "effect"
import { SqlClient } from "effect/sql"
import { CrashPoint } from "../crash-point.ts"
import { Database, onlyRow, orDie, outpaced, ProjectTransaction } from "../database/database.ts"
import { isBrokenByAway } from "../database/database-away.ts"
import { makeGroupCommit, type Touched } from "../database/group-commit.ts"
import { Ids } from "../ids.ts"
import { graphLimits } from "../limits.ts"
import { WakeUps } from "../outbox/wake-ups.ts"
import { Authorities, type Authority, explainDenial, explainTaint, inactiveSentence } from "./authority.ts"
import {
  type Deleted,
  type Deletion,
  makeEntityWrites,
  type Replacement,
  type Terms,
  type Update,
  type Updated
} from "./entity-writes.ts"
import { makeObjectWrites, type ObjectCreation } from "./object-writes.ts"
import { makePurging } from "./purging.ts"
import {
  type Applied,
  type Author,
  contentOf,
  type Created,
  type EntityKind,
  type Planned
} from "./recording.ts"
import {
  ChangeRefused,
  expectTwoEnds,
  expectVersion,
  keyTaken,
  noObject,
  noRelationship,
  refused,
  relationshipExists,
  wrongVersion
} from "./refused.ts"
import { makeRelationshipWrites, type RelationshipCreation } from "./relationship-writes.ts"
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
    /**
     * Makes a person's change in the next batch of its project, and answers when that is committed; undefined where nothing was done
     * and the change needs a transaction of its own: another transaction is in the way, or more is to be done or judged.
     */
    readonly submit: (
      projectId: ProjectId,
      change: Change,
      by: UserId
    ) => Effect.Effect<Applied | undefined, ChangeRefused>
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
      const database = yield* Database
      const authorities = yield* Authorities
      const relationships = yield* Relationships
      const wakeUps = yield* WakeUps
      const entityWrites = makeEntityWrites(sql, yield* Ids)
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

      /** Runs a statement of one item, again where only a new look can say how it went: what it waited for has changed. */
      const one = Effect.fnUntraced(function* <A extends { readonly verdict: string }, R>(
        plan: Effect.Effect<Planned<A>, never, R>
      ) {
        for (let tries = 1; tries <= graphLimits.undecidedTries; tries++) {
          const { outcomes, statement } = yield* plan
          const outcome = yield* onlyRow(outcomes(yield* statement))
          if (outcome.verdict !== "undecided") return outcome
        }
        return yield* outpaced
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
        // Neither way deepens anything; only size and the number of keys can break their bounds, and neither in a small text.
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

      /** Deletes an object and the relationships that end at it, each with its own event. */
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
        // An agent is judged by the types of both ends; and of a fault somebody learns when both are there.
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

      /** What every write ends with. */
      const written = <A, E, R>(write: Effect.Effect<A, E, R>) =>
        write.pipe(
          Effect.tap(() => sql.afterCommit(wakeUps.signal("events"))),
          Effect.tap(() => CrashPoint.hit("graph.beforeCommit")),
          orDie
        )

      /** The statement for changes of one type, and how it went with each. */
      const part = <C extends Change, A>(
        items: ReadonlyArray<BatchItem>,
        type: C["type"],
        plan: (items: ReadonlyArray<BatchItem<C>>) => Effect.Effect<Planned<A>, never, ProjectTransaction>,
        outcomeOf: (change: C, answered: A) => Outcome
      ) => {
        const chosen = items.filter((item): item is BatchItem<C> => item.change.type === type)
        const planned = Effect.map(plan(chosen), ({ outcomes, statement }) => ({
          statement,
          outcomesOf: (rows: ReadonlyArray<unknown>) =>
            outcomes(rows).map((answered, place): readonly [BatchItem, Outcome] => {
              const item = chosen[place] as BatchItem<C>
              return [item, outcomeOf(item.change, answered)]
            })
        }))
        return chosen.length === 0 ? Effect.succeed([]) : Effect.map(planned, Arr.of)
      }

      /** Writes changes of people in one transaction. An outcome is undefined where another transaction is in the way, or more is to be done. */
      const writeBatch = Effect.fnUntraced(function* (
        projectId: ProjectId,
        items: ReadonlyArray<BatchItem>
      ): Effect.fn.Return<ReadonlyArray<Outcome>> {
        const terms: Terms = { cause: direct, locked: "skip" }
        const updating = <C extends UpdateObject | UpdateRelationship>(kind: EntityKind, type: C["type"]) =>
          part<C, Updated<ObjectRow | RelationshipRow>>(
            items,
            type,
            (chosen) => entityWrites.update(kind, chosen.map(updateOf), terms),
            (change, outcome) =>
              updated(kind, { id: entityOf(change), expectedVersion: change.expectedVersion }, outcome)
          )
        const deleting = <C extends DeleteObject | DeleteRelationship>(kind: EntityKind, type: C["type"]) =>
          part<C, Deleted<ObjectRow | RelationshipRow>>(
            items,
            type,
            (chosen) => entityWrites.remove(kind, chosen.map(deletionOf), terms),
            (change, outcome) =>
              deleted(kind, { id: entityOf(change), expectedVersion: change.expectedVersion }, outcome)
          )
        const parts = yield* Effect.all([
          part<CreateObject, Created<ObjectRow>>(
            items,
            "create",
            (chosen) => objectWrites.create(chosen.map(creationOf), terms),
            objectCreated
          ),
          updating<UpdateObject>("object", "update"),
          deleting<DeleteObject>("object", "delete"),
          part<CreateRelationship, Created<RelationshipRow>>(
            items,
            "createRelationship",
            (chosen) => relationshipWrites.create(chosen.map(relationshipCreationOf), terms),
            relationshipCreated
          ),
          updating<UpdateRelationship>("relationship", "updateRelationship"),
          deleting<DeleteRelationship>("relationship", "deleteRelationship")
        ]).pipe(Effect.map(Arr.flatten), Effect.provideService(ProjectTransaction, { projectId }))
        yield* CrashPoint.hit("graph.beforeCommit")
        const [known = [], ...answers] = yield* database.askBatch(
          projectId,
          [
            sql`select 1 from kb.projects where id = ${projectId}`,
            ...parts.map(({ statement }) => statement)
          ],
          graphLimits.batchLockWaitMs
        )
        if (known.length === 0) return items.map(() => undefined)
        const outcomes = new Map<BatchItem, Outcome>(
          parts.flatMap(({ outcomesOf }, place) => outcomesOf(answers[place] ?? []))
        )
        const isAnyWritten = [...outcomes.values()].some(
          (outcome) => outcome !== undefined && "eventId" in outcome && outcome.eventId !== null
        )
        if (isAnyWritten) yield* wakeUps.signal("events")
        return items.map((item) => outcomes.get(item))
      })

      const batches = yield* makeGroupCommit<BatchItem, Outcome>({
        // A lock that lasts, or an item that PostgreSQL refuses, breaks the batch: then each is written by itself.
        write: (projectId, items) =>
          Effect.catchCause(writeBatch(projectId, items), (cause) =>
            Cause.hasInterrupts(cause) || isBrokenByAway(cause)
              ? Effect.failCause(cause)
              : Effect.succeed(items.map(() => undefined))
          ),
        bytesOf: ({ bytes }) => bytes,
        touches: ({ touched }) => touched,
        limits: {
          batchItems: graphLimits.batchChanges,
          batchBytes: graphLimits.batchBytes,
          waitingItems: graphLimits.waitingChanges
        }
      })

      const submit = Effect.fn("Gateway.submit")(function* (
        projectId: ProjectId,
        change: Change,
        by: UserId
      ) {
        if (findChangeFault(change) !== undefined) return undefined
        if (change.type === "createRelationship" && change.relationship.fromId === change.relationship.toId)
          return undefined
        const outcome = yield* batches.submit(projectId, {
          change,
          actor: { actorType: "user", actorId: by },
          bytes: "data" in change ? JSON.stringify(change.data).length : 0,
          touched: touchedBy(change)
        })
        return outcome instanceof ChangeRefused ? yield* outcome : outcome
      })

      const apply = Effect.fn("Gateway.apply")((wanted: Change, author: Author) =>
        written(change(wanted, author) as Effect.Effect<Applied, ChangeRefused, ProjectTransaction>)
      )
      const restoring = makeRestoring(objectWrites, relationshipWrites)
      const purging = yield* makePurging(objectWrites, relationshipWrites)

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

/** What of a change can never be kept; a patch may be smaller or larger than its result, whose size is judged with it. */
const findChangeFault = (change: Change): ChangeRefused | undefined => {
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

const expectKeepable = (change: Change): Effect.Effect<void, ChangeRefused> => {
  const fault = findChangeFault(change)
  return fault === undefined ? Effect.void : Effect.fail(fault)
}

const refusedFor = (
  fault: { readonly message: string; readonly pointer: string } | undefined,
  pointer = fault?.pointer
): ChangeRefused | undefined => fault && refused("invalid", fault.message, pointer)

/** How a change went; undefined where only a transaction of its own can say so. */
type Outcome = Applied | ChangeRefused | undefined

const decided = (outcome: Outcome): Effect.Effect<Applied, ChangeRefused> => {
  if (outcome === undefined) return outpaced
  return outcome instanceof ChangeRefused ? Effect.fail(outcome) : Effect.succeed(outcome)
}

/** The terms of a change in a transaction of its own. */
const alone = ({ cause }: Author): Terms => ({ cause, locked: "wait" })

/** A change and who makes it. */
interface Authored<C extends Change = Change> {
  readonly change: C
  readonly actor: Actor
}

interface BatchItem<C extends Change = Change> extends Authored<C> {
  readonly bytes: number
  readonly touched: Touched
}

/** What two changes of one batch may not both touch: they would be judged by the same state. Only a deletion excludes new relationships. */
const touchedBy = (change: Change): Touched => {
  switch (change.type) {
    case "create":
      return { alone: change.key === null ? [] : [`key ${change.objectType} ${change.key}`], shared: [] }
    case "update":
      return { alone: [change.objectId], shared: [] }
    case "delete":
      return { alone: [change.objectId, `end ${change.objectId}`], shared: [] }
    case "createRelationship": {
      const { fromId, toId, type } = change.relationship
      return { alone: [`${type} ${fromId} ${toId}`], shared: [`end ${fromId}`, `end ${toId}`] }
    }
    case "updateRelationship":
    case "deleteRelationship":
      return { alone: [change.relationshipId], shared: [] }
  }
}

const creationOf = ({ actor, change }: Authored<CreateObject>): ObjectCreation => ({
  type: change.objectType,
  key: change.key,
  content: contentOf(change),
  actor
})

const relationshipCreationOf = ({ actor, change }: Authored<CreateRelationship>): RelationshipCreation => ({
  ...change.relationship,
  content: contentOf(change),
  actor
})

const updateOf = ({ actor, change }: Authored<UpdateObject | UpdateRelationship>): Update => ({
  id: entityOf(change),
  content: contentOf(change),
  expectedVersion: change.expectedVersion,
  actor
})

const deletionOf = ({ actor, change }: Authored<DeleteObject | DeleteRelationship>): Deletion => ({
  id: entityOf(change),
  expectedVersion: change.expectedVersion,
  actor
})

type OfEntity = UpdateObject | UpdateRelationship | DeleteObject | DeleteRelationship

const entityOf = (change: OfEntity): ObjectId | RelationshipId =>
  "objectId" in change ? change.objectId : change.relationshipId

const objectCreated = ({ key, objectType }: CreateObject, outcome: Created<ObjectRow>): Outcome => {
  switch (outcome.verdict) {
    case "created":
      return applied("object", "created", outcome)
    case "taken":
      return keyTaken(objectType, key, outcome.holderId)
    default:
      return undefined
  }
}

const relationshipCreated = (
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

const updated = (
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

const deleted = (
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

const noEnd = (id: string, end: "fromId" | "toId"): ChangeRefused =>
  refused("notFound", `There is no object ${id}`, `/${end}`)

/** What was done to an entity; an event only where something was. */
const applied = (
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
