/**
 * Undos: plans to revert what a run, an agent's version or a chain did.
 *
 * **Invariant** A cause has at most one open plan: a repeated request returns it, updated to the current graph. A plan
 * changes nothing in the graph before it is approved.
 */
import type { Actor, Cause } from "@tropism/domain/actor"
import type { TaskId, UserId, ObjectId, RelationshipId } from "@tropism/domain/ids"
import type { NamedObject } from "@tropism/domain/named-object"
import { isUndo, type UndoTask } from "@tropism/domain/task"
import {
  causeKey,
  undoBounds,
  type UndoCause,
  type UndoItem,
  type UndoPayload,
  type Reverted,
  type UndoOutcome
} from "@tropism/domain/undo"
import { Context, Effect, Layer, type Schema } from "effect"
import { SqlClient, type Statement } from "effect/sql"
import { orDie, ProjectTransaction } from "../database/database.ts"
import type { ChangeRefused } from "../graph/change-refused.ts"
import { Gateway } from "../graph/gateway.ts"
import { objectNamed } from "../graph/objects.ts"
import type { Author } from "../graph/recording.ts"
import { Ids } from "../ids.ts"
import { makeDemotions } from "./autonomy.ts"
import { undoLimits } from "./limits.ts"
import { makeTaskReading } from "./task-queries.ts"
import {
  makeUndoCauses,
  makeUndoFacts,
  makeUndoItems,
  planDigest,
  makeUndoPlanning,
  type Planned,
  UndoRefused,
  type ItemHead
} from "./undo-plan.ts"

type Planning<A> = Effect.Effect<A, UndoRefused, ProjectTransaction>

export class Undos extends Context.Service<
  Undos,
  {
    /** Plans the undo of a cause, or returns its open plan, updated to the current graph; undefined when there is no such cause. */
    readonly plan: (
      cause: UndoCause,
      by: UserId
    ) => Planning<{ readonly task: UndoTask; readonly isNew: boolean } | undefined>
    /** Updates an open plan to the current graph; undefined when there is no such task. */
    readonly replan: (id: TaskId, by: UserId) => Planning<UndoTask | undefined>
    /** Items of an undo after a position; undefined when there is no such undo. */
    readonly items: (
      id: TaskId,
      after: number | undefined,
      limit: number
    ) => Effect.Effect<ReadonlyArray<UndoItem> | undefined, never, ProjectTransaction>
  }
>()("@tropism/server/task/Undos") {
  static readonly layer = Layer.effect(
    Undos,
    Effect.gen(function* () {
      const sql = yield* SqlClient.SqlClient
      const ids = yield* Ids
      const { get, holdNumbers, nextNumber } = yield* makeTaskReading
      const { find, atWork, countSuggestions } = yield* makeUndoCauses
      const { touchedBy, namesOf } = yield* makeUndoFacts
      const planning = yield* makeUndoPlanning
      const kept = yield* makeUndoItems

      /** Computes the plan of a cause as of now. */
      const draw = Effect.fnUntraced(function* (cause: UndoCause, requestedBy: UserId) {
        const { count, runId } = yield* atWork(cause)
        if (count > 0)
          return yield* refuse(
            `${count === 1 ? "A run" : `${count} runs`} of it may still write: stop it first with POST /runs/${runId}/cancel, or all with a kill switch`
          )
        const { total, touched } = yield* touchedBy(cause)
        if (total === 0) return yield* refuse("It has changed nothing in the graph: there is nothing to undo")
        if (total > undoBounds.maxEntities)
          return yield* refuse(
            `It has changed ${total} objects and relationships, and at most ${undoBounds.maxEntities} are undone at once: undo its runs one by one`
          )
        const plan = yield* planning.plan(touched)
        const payload: UndoPayload = {
          cause,
          requestedBy,
          counts: { ...countsOf(plan), suggestions: yield* countSuggestions(cause) },
          agents: yield* namesOf(touched)
        }
        return { plan, payload, digest: yield* planDigest(cause, plan) }
      })

      const openOf = Effect.fnUntraced(function* (cause: UndoCause) {
        const { projectId } = yield* ProjectTransaction
        const [row] = yield* sql<{ readonly id: TaskId }>`
          select id from kb.tasks where project_id = ${projectId} and subject = ${causeKey(cause)} and type = 'undo' and status = 'pending'`
        return row && (yield* undo(row.id))
      })

      const undo = Effect.fnUntraced(function* (id: TaskId) {
        const task = yield* get(id, nobody)
        return task && isUndo(task) ? task : undefined
      })

      const plan = Effect.fn("Undos.plan")(function* (cause: UndoCause, by: UserId) {
        const { projectId } = yield* ProjectTransaction
        const found = yield* find(cause)
        if (!found) return undefined
        const waiting = yield* openOf(cause)
        if (waiting) return { task: yield* upToDate(waiting, by), isNew: false }
        const { digest, payload, plan: items } = yield* draw(cause, by)
        if (payload.counts.ready + payload.counts.conflicts === 0) return yield* refuse(nothingLeft(items))
        // A concurrent request for the same plan waits here and then finds it; only a request that plans takes the number.
        yield* holdNumbers
        const other = yield* openOf(cause)
        if (other) return { task: other, isNew: false }
        const id = (yield* ids.next) as TaskId
        yield* sql`
          insert into kb.tasks (id, project_id, number, type, title, payload, digest, subject, evidence, root_event_id, depth)
          values (${id}, ${projectId}, ${yield* nextNumber}, 'undo', ${found.title}, ${JSON.stringify(payload)}::text::jsonb, ${digest},
            ${causeKey(cause)}, '[]', ${found.rootEventId}, 0)`
        yield* kept.keep(id, 1, items)
        const task = yield* undo(id)
        return task && { task, isNew: true }
      }, orDie)

      /** Returns the open plan, replanned when the graph has changed, because an outdated one cannot be approved. */
      const upToDate = Effect.fnUntraced(function* (waiting: UndoTask, by: UserId) {
        const { cause, requestedBy } = waiting.payload
        const { digest } = yield* draw(cause, requestedBy)
        return digest === waiting.digest ? waiting : ((yield* replan(waiting.id, by)) ?? waiting)
      })

      const replan = Effect.fn("Undos.replan")(function* (id: TaskId, by: UserId) {
        const { projectId } = yield* ProjectTransaction
        const [row] = yield* sql<{ readonly revision: number; readonly payload: UndoPayload }>`
          update kb.tasks set revision = revision + 1
          where id = ${id} and project_id = ${projectId} and type = 'undo' and status = 'pending' returning revision, payload`
        if (!row) {
          const task = yield* get(id, by)
          if (!task) return undefined
          return yield* new UndoRefused(
            isUndo(task)
              ? { reason: "alreadyDecided", detail: `Task ${task.number} is ${task.status} already` }
              : { reason: "state", detail: `Task ${task.number} is no undo: only those are planned anew` }
          )
        }
        const drawn = yield* draw(row.payload.cause, row.payload.requestedBy)
        yield* sql`
          update kb.tasks set payload = ${JSON.stringify(drawn.payload)}::text::jsonb, digest = ${drawn.digest} where id = ${id}`
        yield* kept.keep(id, row.revision, drawn.plan)
        return yield* undo(id)
      }, orDie)

      const items = Effect.fn("Undos.items")(function* (
        id: TaskId,
        after: number | undefined,
        limit: number
      ) {
        return (yield* undo(id)) && (yield* kept.read(id, { after: after ?? 0, limit }))
      }, orDie)

      return Undos.of({ plan, replan, items })
    })
  )
}

/** An undo belongs to the project and has no owner; every reader of the project may read it. */
const nobody = "" as UserId

const refuse = (detail: string) => new UndoRefused({ reason: "state", detail })

const nothingLeft = (plan: ReadonlyArray<Planned>): string =>
  plan.some(({ known }) => known.isPurged || known.isDeleted)
    ? "Nothing of it is left to undo: what it changed is as it was before, or has been deleted or purged since"
    : "Nothing of it is left to undo: everything is as it was before"

const countsOf = (plan: ReadonlyArray<Planned>) => {
  const count = (status: string) => plan.filter(({ draft }) => draft.status === status).length
  const kept = plan
    .flatMap(({ draft }) => draft.properties)
    .filter((property) => property.status === "conflict").length
  return { ready: count("ready"), conflicts: count("conflict"), unneeded: count("unneeded"), kept }
}

// Applies an approved undo: every item of its plan, or nothing.
//
// In the transaction of the decision all planned entities are locked at their planned versions; a changed one rolls the
// decision back. The changes are the person's, made through the gateway, and name the reverted agents, so that these are not
// woken. Deletions precede restores, because a restore may need the key of a deleted object.

/** An undo that was decided. */
export interface DecidedUndo {
  readonly id: TaskId
  readonly number: bigint
  readonly revision: number
  readonly payload: UndoPayload
}

export const makeUndoing = Effect.gen(function* () {
  const sql = yield* SqlClient.SqlClient
  const gateway = yield* Gateway
  const items = yield* makeUndoItems
  const { expireSuggestions } = yield* makeUndoCauses
  const { reverted } = yield* makeDemotions

  const named = (id: Statement.Fragment) =>
    sql`${objectNamed(sql, sql`nullif(current_setting('tropism.project', true), '')::uuid`, id)}`

  /** Locks the planned entities, objects before relationships, and returns those that have changed. */
  const lock = Effect.fnUntraced(function* (wanted: ReadonlyArray<ItemHead>) {
    const { projectId } = yield* ProjectTransaction
    const [objects, relationships] = [wanted.filter(isObject), wanted.filter((item) => !isObject(item))]
    const coming = relationships.filter(({ action }) => action === "restore").map(({ id }) => id)
    const found = [
      ...(yield* sql<Found>`
        select id, version, purged_at is not null as is_purged, ${named(sql`graph_objects.id`)} as named from kb.graph_objects where project_id = ${projectId} and id = any(array(
          select unnest(${objects.map(({ id }) => id)}::uuid[])
          union
          select unnest(array[from_id, to_id]) from kb.graph_relationships where id = any(${coming}::uuid[])
        )) order by id for update`),
      ...(yield* sql<Found>`
        select id, version, false as is_purged, null as named from kb.graph_relationships
        where project_id = ${projectId} and id = any(${relationships.map(({ id }) => id)}::uuid[]) order by id for update`)
    ]
    const names = new Map(found.map((row) => [row.id, row.named]))
    const versions = new Map(found.map((row) => [row.id, row.isPurged ? undefined : row.version]))
    return wanted
      .filter((item) => versions.get(item.id) !== item.version)
      .map((item) => {
        const now = versions.get(item.id)
        return `${nameOf(item, names.get(item.id) ?? null)} is ${now === undefined ? "purged" : `at version ${now}, not ${item.version}`}`
      })
  })

  /** Relationships at objects to be deleted that are not deleted by the plan. */
  const standing = Effect.fnUntraced(function* (wanted: ReadonlyArray<ItemHead>) {
    const [objects, relationships] = [
      idsOf(wanted, "graphObject", "delete"),
      idsOf(wanted, "relationship", "delete")
    ]
    if (objects.length === 0) return []
    const at = (end: string) => sql`
      select one.id, one.type, one.${sql.literal(end)} as object_id, ${named(sql`one.${sql.literal(end)}`)} as named from kb.graph_relationships one
      where one.${sql.literal(end)} = any(${objects}::uuid[]) and one.deleted_at is null and not one.id = any(${relationships}::uuid[])`
    return yield* sql<Standing>`
      ${at("from_id")} union all ${at("to_id")} limit ${undoLimits.itemsTold}`
  })

  /** Refuses when an entity has changed, or when a left-out relationship would be deleted with its object. */
  const hold = Effect.fnUntraced(function* (
    { number }: DecidedUndo,
    wanted: ReadonlyArray<ItemHead>,
    leftOut: ReadonlySet<string>
  ) {
    const moved = yield* lock(wanted)
    const inTheWay = yield* standing(wanted)
    const falling = inTheWay.find((one) => leftOut.has(one.id))
    if (falling)
      return yield* new UndoRefused({
        reason: "notInPlan",
        detail: `The relationship ${falling.id} would fall with ${objectOf(falling)}: leave that out too`
      })
    moved.push(...inTheWay.map((one) => `${objectOf(one)} has a relationship of type ${one.type} since`))
    if (moved.length === 0) return
    const told = moved.slice(0, undoLimits.itemsTold).join("; ")
    const more =
      moved.length > undoLimits.itemsTold ? `; and ${moved.length - undoLimits.itemsTold} more` : ""
    return yield* new UndoRefused({
      reason: "outdated",
      detail: `The graph has moved since undo ${number} was planned, and nothing was done: ${told}${more}. Plan it anew`
    })
  })

  /** Deletes entities: relationships before their objects. */
  const remove = Effect.fnUntraced(function* (wanted: ReadonlyArray<ItemHead>, author: Author) {
    for (const { id, version } of having(wanted, "relationship", "delete"))
      yield* gateway.apply(
        { type: "deleteRelationship", relationshipId: id as RelationshipId, expectedVersion: version },
        author
      )
    for (const { id, version } of having(wanted, "graphObject", "delete"))
      yield* gateway.apply({ type: "delete", objectId: id as ObjectId, expectedVersion: version }, author)
  })

  /** Restores entities: objects before their relationships. */
  const restore = Effect.fnUntraced(function* (wanted: ReadonlyArray<ItemHead>, author: Author) {
    for (const { id } of having(wanted, "graphObject", "restore"))
      yield* gateway.restoreObjectAlone(id as ObjectId, author)
    for (const { id } of having(wanted, "relationship", "restore"))
      yield* gateway.restoreRelationship(id as RelationshipId, author)
  })

  /** Puts values back, a few items at a time. */
  const putBack = Effect.fnUntraced(function* (id: TaskId, wanted: ReadonlyArray<ItemHead>, author: Author) {
    const places = wanted
      .filter(({ action }) => action === "update" || action === "restore")
      .map(({ place }) => place)
    for (let from = 0; from < places.length; from += undoLimits.valuesItems) {
      const read = yield* items.read(id, { places: places.slice(from, from + undoLimits.valuesItems) })
      for (const item of read) {
        const values = valuesOf(item)
        if (values) yield* gateway.putBack(values, author)
      }
    }
  })

  /** Applies a decided undo without the left-out items, and returns what was done. */
  const undo = Effect.fnUntraced(function* (
    decided: DecidedUndo,
    by: UserId,
    leaveOut: ReadonlyArray<string>
  ) {
    const { id, number, payload, revision } = decided
    const all = yield* items.heads(id, revision)
    const known = new Set(all.map((item) => item.id))
    const strange = leaveOut.find((one) => !known.has(one))
    if (strange !== undefined)
      return yield* new UndoRefused({
        reason: "notInPlan",
        detail: `Undo ${number} has no item ${strange}: leaveOut takes ids of its items`
      })
    const leftOut = new Set(leaveOut)
    const ready = all.filter(({ status }) => status === "ready")
    const wanted = ready.filter((item) => !leftOut.has(item.id))
    if (wanted.length === 0)
      return yield* new UndoRefused({
        reason: "state",
        detail: `Nothing of undo ${number} is to be done: reject it, or plan it anew`
      })
    const expiredSuggestions = yield* expireSuggestions(payload.cause, { number })
    yield* reverted(
      wanted.flatMap(({ events }) => events),
      by,
      `Undone by task ${number}`
    )
    yield* hold(decided, wanted, leftOut)
    const author = authorOf(decided, by)
    yield* remove(wanted, author).pipe(
      Effect.andThen(restore(wanted, author)),
      Effect.andThen(putBack(id, wanted, author)),
      Effect.catchTag("ChangeRefused", inTheWay)
    )
    yield* items.leaveOut(id, revision, leaveOut)
    const outcome: UndoOutcome = {
      undone: wanted.length,
      leftOut: ready.length - wanted.length,
      expiredSuggestions,
      reverted: revertedBy(wanted)
    }
    yield* sql`update kb.tasks set outcome = ${JSON.stringify(outcome)}::text::jsonb where id = ${id}`
    return outcome
  })

  return { undo }
})

interface Found {
  readonly id: string
  readonly version: number
  readonly isPurged: boolean
  /** For an object only. */
  readonly named: NamedObject | null
}

/** A relationship at an object to be deleted. */
interface Standing {
  readonly id: string
  readonly type: string
  readonly objectId: string
  readonly named: NamedObject | null
}

const isObject = ({ entityType }: ItemHead): boolean => entityType === "graphObject"

const having = (
  wanted: ReadonlyArray<ItemHead>,
  entityType: ItemHead["entityType"],
  action: ItemHead["action"]
) => wanted.filter((item) => item.entityType === entityType && item.action === action)

const idsOf = (...asked: Parameters<typeof having>): ReadonlyArray<string> =>
  having(...asked).map(({ id }) => id)

/** Returns the display name, else the id. */
const nameOf = ({ entityType, id, objectType }: ItemHead, named: NamedObject | null): string =>
  `${entityType === "graphObject" ? "the" : "the relationship"} ${objectType} ${named?.name ?? id}`

const objectOf = ({ named, objectId }: Standing): string =>
  `the ${named?.type ?? "object"} ${named?.name ?? objectId}`

/** Returns the author: the person, with the reverted agents as the cause. */
const authorOf = ({ id, payload }: DecidedUndo, by: UserId): Author => {
  const actor: Actor = { actorType: "user", actorId: by }
  const cause: Cause = {
    runId: null,
    toolCallId: null,
    taskId: id,
    approvedBy: null,
    rootEventId: null,
    depth: 0,
    undoes: payload.agents.map((agent) => agent.id)
  }
  return { actor, cause }
}

/** Returns the properties to put back and their version; undefined when there are none. */
const valuesOf = ({ action, entityType, id, properties, version }: UndoItem) => {
  const ready = properties.filter(({ status }) => status === "ready")
  if (ready.length === 0) return undefined
  const set = new Map<string, Schema.Json>()
  const remove: Array<string> = []
  for (const { back, property } of ready)
    if (back === undefined) remove.push(property)
    else set.set(property, back)
  const values = {
    set: Object.fromEntries(set),
    untrusted: ready.filter(({ untrusted }) => untrusted === true).map(({ property }) => property),
    remove,
    expectedVersion: action === "restore" ? version + 1 : version
  }
  return entityType === "graphObject"
    ? { ...values, kind: "object" as const, id: id as ObjectId }
    : { ...values, kind: "relationship" as const, id: id as RelationshipId }
}

/** An entity unknown to the plan has the key or the ends of one to be restored. */
const inTheWay = ({ detail }: ChangeRefused) =>
  Effect.fail(new UndoRefused({ reason: "outdated", detail: `Nothing was done: ${detail}. Plan it anew` }))

/** Returns the reverted work by agent version and kind, which counts against the version's record. */
export const revertedBy = (undone: ReadonlyArray<ItemHead>): ReadonlyArray<Reverted> => {
  const counts = new Map<string, Reverted>()
  for (const { entityType, objectType, wrote } of undone)
    for (const one of wrote) {
      const key = [one.agentId, one.agentVersion, entityType, objectType, one.operation].join(" ")
      const { count } = counts.get(key) ?? { count: 0 }
      counts.set(key, { ...one, entityType, objectType, count: count + 1 })
    }
  return [...counts.values()]
}
