/**
 * Writes people's changes in batches: one transaction for many, each change judged by its own row.
 *
 * **Invariant** A change returns after its batch is committed, and is either in it or not written at all. Rows locked by
 * another transaction are skipped and left to the caller.
 */
import { direct, type Actor } from "@tropism/domain/actor"
import type {
  Change,
  CreateObject,
  CreateRelationship,
  DeleteObject,
  DeleteRelationship,
  UpdateObject,
  UpdateRelationship
} from "@tropism/domain/change"
import type { ProjectId, UserId, GraphEventId, ObjectId, RelationshipId } from "@tropism/domain/ids"
import { findFault, findPropertiesFault, namelessFault } from "@tropism/domain/json"
import { Array as Arr, Cause, Effect, Exit } from "effect"
import { SqlClient, SqlError } from "effect/sql"
import { CrashPoint } from "../crash-point.ts"
import { isBrokenByAway } from "../database/connection-errors.ts"
import { Database, ProjectTransaction, retryTransaction } from "../database/database.ts"
import { makeGroupCommit, type Touched } from "../database/group-commit.ts"
import { graphLimits } from "../limits.ts"
import { Notifier } from "../outbox/notifier.ts"
import {
  ChangeRefused,
  keyTaken,
  noObject,
  noRelationship,
  refused,
  relationshipExists,
  wrongVersion
} from "./change-refused.ts"
import type {
  makeObjectWrites,
  makeRelationshipWrites,
  ObjectCreation,
  RelationshipCreation
} from "./creations.ts"
import type { Deleted, makeEntityWrites, Terms, Updated, Deletion, Update } from "./entity-writes.ts"
import {
  type Created,
  type EntityKind,
  type Planned,
  type ObjectRow,
  type RelationshipRow,
  type Applied,
  type Author,
  contentOf,
  toObject,
  toRelationship
} from "./recording.ts"

interface BatchItem<C extends Change = Change> extends Authored<C> {
  readonly bytes: number
  readonly touched: Touched
}

/**
 * The entities that exclude two changes from one batch, because both would be judged by the same state. Only a deletion
 * excludes new relationships at its object.
 */
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

/** Whether PostgreSQL rolled a batch back; after a broken connection the outcome is unknown. */
const isUndone = (cause: Cause.Cause<never>): boolean =>
  cause.reasons.every(
    (reason) =>
      reason._tag === "Die" &&
      reason.defect instanceof SqlError.SqlError &&
      reason.defect.reason._tag !== "ConnectionError"
  ) && !isBrokenByAway(cause)

/**
 * Returns the verb that adds a person's change to its project's next batch; its result is undefined when the change needs its
 * own transaction.
 */
export const makeWriteBatches = Effect.fnUntraced(function* (
  objectWrites: Effect.Success<typeof makeObjectWrites>,
  relationshipWrites: Effect.Success<typeof makeRelationshipWrites>,
  entityWrites: ReturnType<typeof makeEntityWrites>
) {
  const sql = yield* SqlClient.SqlClient
  const database = yield* Database
  const notifier = yield* Notifier

  /** The statement for changes of one type, with the outcome of each. */
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

  /** The statements of a batch, one for each type of change. */
  const plan = (projectId: ProjectId, items: ReadonlyArray<BatchItem>) => {
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
    return Effect.all([
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
  }

  /** Writes people's changes in one transaction. An outcome is undefined when another transaction holds a row or the change needs more. */
  const write = Effect.fnUntraced(function* (
    projectId: ProjectId,
    items: ReadonlyArray<BatchItem>
  ): Effect.fn.Return<ReadonlyArray<Exit.Exit<Outcome>>> {
    const parts = yield* plan(projectId, items)
    yield* CrashPoint.hit("graph.beforeCommit")
    const statements = [
      sql`select 1 from kb.projects where id = ${projectId}`,
      ...parts.map(({ statement }) => statement)
    ]
    const asked = yield* Effect.exit(database.askBatch(projectId, statements, graphLimits.batchLockWaitMs))
    if (Exit.isFailure(asked)) {
      const { cause } = asked
      if (Cause.hasInterrupts(cause)) return yield* Effect.failCause(cause)
      // A long lock or an item that PostgreSQL refuses breaks the batch; each change is then written alone.
      return items.map(() => (isUndone(cause) ? Exit.succeed(undefined) : Exit.failCause(cause)))
    }
    const [known = [], ...answers] = asked.value
    // The batch is committed: a later fault is reported, and nothing is written again.
    const told = yield* Effect.exit(
      Effect.sync(
        () =>
          new Map<BatchItem, Outcome>(
            known.length === 0
              ? []
              : parts.flatMap(({ outcomesOf }, place) => outcomesOf(answers[place] ?? []))
          )
      )
    )
    if (Exit.isFailure(told)) return items.map(() => Exit.failCause(told.cause))
    const isAnyWritten = [...told.value.values()].some(
      (outcome) => outcome !== undefined && "eventId" in outcome && outcome.eventId !== null
    )
    if (isAnyWritten) yield* notifier.signal("events")
    return items.map((item) => Exit.succeed(told.value.get(item)))
  })

  const batches = yield* makeGroupCommit<BatchItem, Exit.Exit<Outcome>>({
    write,
    bytesOf: ({ bytes }) => bytes,
    touches: ({ touched }) => touched,
    limits: {
      batchItems: graphLimits.batchChanges,
      batchBytes: graphLimits.batchBytes,
      waitingItems: graphLimits.waitingChanges
    }
  })

  return Effect.fn("Gateway.submit")(function* (projectId: ProjectId, change: Change, by: UserId) {
    if (findChangeFault(change) !== undefined) return undefined
    if (change.type === "createRelationship" && change.relationship.fromId === change.relationship.toId)
      return undefined
    const outcome = yield* yield* batches.submit(projectId, {
      change,
      actor: { actorType: "user", actorId: by },
      bytes: "data" in change ? JSON.stringify(change.data).length : 0,
      touched: touchedBy(change)
    })
    return outcome instanceof ChangeRefused ? yield* outcome : outcome
  })
})

// Translates a change to a statement item, and the statement's row to the outcome of the change.
//
// Pure, and the same for single changes and batches.

/** Returns why a change can never be stored; a patch's size is judged with its result, which may be smaller or larger. */
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

/** Outcome of a change; undefined when only its own transaction can decide. */
type Outcome = Applied | ChangeRefused | undefined

export const decided = (outcome: Outcome): Effect.Effect<Applied, ChangeRefused> => {
  if (outcome === undefined) return retryTransaction
  return outcome instanceof ChangeRefused ? Effect.fail(outcome) : Effect.succeed(outcome)
}

/** Terms of a change in its own transaction. */
export const alone = ({ cause }: Author): Terms => ({ cause, locked: "wait" })

/** A change and who makes it. */
interface Authored<C extends Change = Change> {
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

const updateOf = ({ actor, change }: Authored<UpdateObject | UpdateRelationship>): Update => ({
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

const entityOf = (change: OfEntity): ObjectId | RelationshipId =>
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

/** Result for an entity; with an event only when something was written. */
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
