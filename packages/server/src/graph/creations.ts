/**
 * Creates and restores objects, one statement per verb; `entity-writes.ts` updates and deletes them.
 *
 * Each statement returns what it did. Authority and content are checked by the gateway, the only caller.
 */
import type { Actor } from "@tropism/domain/actor"
import { byCodePoint } from "@tropism/domain/code-points"
import type { ChangeType } from "@tropism/domain/graph"
import type { GraphEventId, ObjectId, RelationshipId } from "@tropism/domain/ids"
import { Effect, Array as Arr } from "effect"
import { SqlClient, type Statement } from "effect/sql"
import { onlyRow, ProjectTransaction } from "../database/database.ts"
import { Ids } from "../ids.ts"
import { graphLimits } from "../limits.ts"
import type { Terms } from "./entity-writes.ts"
import {
  allProperties,
  type Author,
  columnsOf,
  type Content,
  type Created,
  createdOf,
  type CreationRow,
  inOrder,
  itemRows,
  objectColumns,
  type Planned,
  recording,
  type ObjectRow,
  relationshipColumns,
  type RelationshipRow
} from "./recording.ts"

export interface ObjectCreation {
  readonly type: string
  readonly key: string | null
  readonly content: Content
  readonly actor: Actor
}

export const makeObjectWrites = Effect.gen(function* () {
  const sql = yield* SqlClient.SqlClient
  const ids = yield* Ids
  const nextEventId = Effect.map(ids.next, (id) => id as GraphEventId)
  const columns = sql.literal(objectColumns)

  /** Creates objects; skips those whose key another object has. */
  const create = Effect.fnUntraced(function* (creations: ReadonlyArray<ObjectCreation>, { cause }: Terms) {
    const { projectId } = yield* ProjectTransaction
    const made = yield* Effect.forEach(creations, () => Effect.all([ids.next, nextEventId]))
    const items = creations.map(({ actor, content, key, type }, place) => ({
      item_id: made[place]?.[0],
      event_id: made[place]?.[1],
      type,
      key,
      properties: content.properties,
      marks: content.untrusted,
      names: Object.keys(content.properties).toSorted(byCodePoint),
      by_type: actor.actorType,
      by_id: actor.actorId
    }))
    const statement = sql`
      with item as materialized (
        ${itemRows(sql, items, "item_id uuid, event_id uuid, type text, key text, properties jsonb, marks text[], names text[], by_type text, by_id text")}
      ), made as (
        insert into kb.graph_objects (id, project_id, type, key, properties, untrusted, version, actor_type, actor_id)
        select item_id, ${projectId}::uuid, type, key, properties, marks, 1, by_type, by_id from item
        on conflict (project_id, type, key) where deleted_at is null do nothing
        returning ${columns}
      ), changed as (
        select made.*, event_id, names as changed_properties from made join item on item_id = id
      ), ${recording(sql, "object", "created", { cause })}
      select item.item_id, item.event_id, changed.id is not null as is_created, ${sql.literal(columnsOf("changed", objectColumns))}, case when changed.id is null then (
        select holder.id from kb.graph_objects holder
        where holder.project_id = ${projectId} and holder.type = item.type and holder.key = item.key and holder.deleted_at is null
      ) end as holder_id
      from item left join changed on changed.id = item.item_id`
    const planned: Planned<Created<ObjectRow>> = {
      statement,
      outcomes: inOrder(
        made.map(([id]) => id),
        (row: CreationRow<ObjectRow>) => createdOf(row)
      )
    }
    return planned
  })

  /** Returns the type of a live object without a lock; a type never changes. */
  const typeOf = Effect.fnUntraced(function* (id: ObjectId) {
    const { projectId } = yield* ProjectTransaction
    const [row] = yield* sql<{ readonly type: string }>`
      select type from kb.graph_objects where id = ${id} and project_id = ${projectId} and deleted_at is null`
    return row?.type
  })

  /** Returns the id of the object with a key, without a lock. */
  const holderOf = Effect.fnUntraced(function* (type: string, key: string | null) {
    const { projectId } = yield* ProjectTransaction
    const [row] = yield* sql<{ readonly id: ObjectId }>`
      select id from kb.graph_objects where project_id = ${projectId} and type = ${type} and key = ${key} and deleted_at is null`
    return row?.id
  })

  const lock = Effect.fnUntraced(function* (id: ObjectId, isDeleted: boolean) {
    const { projectId } = yield* ProjectTransaction
    const [row] = yield* sql<ObjectRow & { readonly deletedAt: Date | null }>`
      select ${columns}, deleted_at from kb.graph_objects
      where id = ${id} and project_id = ${projectId} and purged_at is null and (deleted_at is not null) = ${isDeleted} for update`
    return row
  })

  /** Restores a locked object; violates the unique index when another object now has the key. */
  const restore = Effect.fnUntraced(function* (id: ObjectId, author: Author) {
    const { actor } = author
    const eventId = yield* nextEventId
    const rows = yield* sql<ObjectRow>`
      with changed as (
        update kb.graph_objects object set deleted_at = null, updated_at = greatest(now(), updated_at), version = version + 1,
          actor_type = ${actor.actorType}, actor_id = ${actor.actorId}
        where id = ${id} returning ${columns}, ${eventId}::uuid as event_id, ${allProperties(sql)} as changed_properties
      ), ${recording(sql, "object", "created", author)}
      select ${columns} from changed`
    return { row: yield* onlyRow(rows), eventId }
  })

  return { create, typeOf, holderOf, lock, restore }
})

// Creates, deletes and restores relationships, one statement per verb; the gateway is the only caller.
//
// Relationships deleted or restored with their object are written in chunks of the same transaction, and no rows are returned.

export interface RelationshipCreation {
  readonly type: string
  readonly fromId: ObjectId
  readonly toId: ObjectId
  readonly content: Content
  readonly actor: Actor
}

export const makeRelationshipWrites = Effect.gen(function* () {
  const sql = yield* SqlClient.SqlClient
  const ids = yield* Ids
  const nextEventId = Effect.map(ids.next, (id) => id as GraphEventId)
  const columns = sql.literal(relationshipColumns)
  const own = sql.literal(columnsOf("one", relationshipColumns))

  /** Locks the live objects among these, so that none is deleted before the commit. */
  const holdEnds = Effect.fnUntraced(function* (ends: ReadonlyArray<ObjectId>) {
    const { projectId } = yield* ProjectTransaction
    return yield* sql<{ readonly id: ObjectId; readonly type: string }>`
      select id, type from kb.graph_objects where id = any(${ends}::uuid[]) and project_id = ${projectId} and deleted_at is null
      order by id for key share`
  })

  /** Creates relationships and locks their ends; skips a pair of objects that already has one of this type. */
  const create = Effect.fnUntraced(function* (
    creations: ReadonlyArray<RelationshipCreation>,
    { cause, locked }: Terms
  ) {
    const { projectId } = yield* ProjectTransaction
    const made = yield* Effect.forEach(creations, () => Effect.all([ids.next, nextEventId]))
    const items = creations.map(({ actor, content, fromId, toId, type }, place) => ({
      item_id: made[place]?.[0],
      event_id: made[place]?.[1],
      type,
      from_id: fromId,
      to_id: toId,
      properties: content.properties,
      marks: content.untrusted,
      names: Object.keys(content.properties).toSorted(byCodePoint),
      by_type: actor.actorType,
      by_id: actor.actorId
    }))
    const skip = sql.literal(locked === "skip" ? "skip locked" : "")
    const isMissing = (end: "from_id" | "to_id") => sql`(
      select there.id from kb.graph_objects there
      where there.id = item.${sql.literal(end)} and there.project_id = ${projectId} and there.deleted_at is null) is null`
    const statement = sql`
      with item as materialized (
        ${itemRows(sql, items, "item_id uuid, event_id uuid, type text, from_id uuid, to_id uuid, properties jsonb, marks text[], names text[], by_type text, by_id text")}
      ), ends as materialized (
        select id from kb.graph_objects
        where id = any(array(select from_id from item union select to_id from item)) and project_id = ${projectId} and deleted_at is null
        order by id for key share ${skip}
      ), held as materialized (
        select array(select id from ends) as ids
      ), made as (
        insert into kb.graph_relationships (id, project_id, type, from_id, to_id, properties, untrusted, version, actor_type, actor_id)
        select item_id, ${projectId}::uuid, type, from_id, to_id, properties, marks, 1, by_type, by_id from item, held
        where from_id = any(ids) and to_id = any(ids)
        on conflict (project_id, type, from_id, to_id) where deleted_at is null do nothing
        returning ${columns}
      ), changed as (
        select made.*, event_id, names as changed_properties from made join item on item_id = id
      ), ${recording(sql, "relationship", "created", { cause })}
      select item.item_id, item.event_id, changed.id is not null as is_created, ${sql.literal(columnsOf("changed", relationshipColumns))}, case when changed.id is null then (
          select holder.id from kb.graph_relationships holder
          where holder.project_id = ${projectId} and holder.type = item.type and holder.from_id = item.from_id
            and holder.to_id = item.to_id and holder.deleted_at is null
        ) end as holder_id,
        case
          when changed.id is not null then null
          when item.from_id <> all(ids) and ${isMissing("from_id")} then 'fromId'
          when item.to_id <> all(ids) and ${isMissing("to_id")} then 'toId' end as missing_end
      from item cross join held left join changed on changed.id = item.item_id`
    const planned: Planned<Created<RelationshipRow>> = {
      statement,
      outcomes: inOrder(
        made.map(([id]) => id),
        (
          row: CreationRow<RelationshipRow> & { missingEnd: "fromId" | "toId" | null }
        ): Created<RelationshipRow> =>
          row.missingEnd === null
            ? createdOf<RelationshipRow>(row)
            : { verdict: "noEnd", end: row.missingEnd }
      )
    }
    return planned
  })

  /** Returns a relationship with the types of its ends, without a lock; neither ends nor types ever change. */
  const find = Effect.fnUntraced(function* (id: RelationshipId, isDeleted: boolean) {
    const { projectId } = yield* ProjectTransaction
    const [row] = yield* sql<{
      readonly type: string
      readonly fromId: ObjectId
      readonly toId: ObjectId
      readonly fromType: string
      readonly toType: string
    }>`
      select one.type, from_id, to_id, start.type as from_type, finish.type as to_type from kb.graph_relationships one
      join kb.graph_objects start on start.id = from_id join kb.graph_objects finish on finish.id = to_id
      where one.id = ${id} and one.project_id = ${projectId} and (one.deleted_at is not null) = ${isDeleted}`
    return row
  })

  const lock = Effect.fnUntraced(function* (id: RelationshipId, isDeleted: boolean) {
    const { projectId } = yield* ProjectTransaction
    const [row] = yield* sql<{ readonly version: number }>`
      select version from kb.graph_relationships
      where id = ${id} and project_id = ${projectId} and (deleted_at is not null) = ${isDeleted} for update`
    return row
  })

  /** Deletes or restores locked relationships; `answer` selects from the rows that `changed`. */
  const turning = Effect.fnUntraced(function* (
    locked: ReadonlyArray<RelationshipId>,
    type: Turn,
    author: Author,
    answer: Statement.Fragment
  ) {
    const { actor } = author
    const eventIds = yield* Effect.forEach(locked, () => nextEventId)
    const isDeleted = type === "deleted"
    return yield* sql<RelationshipRow & { readonly eventId: GraphEventId }>`
      with changed as (
        update kb.graph_relationships one set deleted_at = case when ${isDeleted}::boolean then now() end,
          updated_at = greatest(now(), one.updated_at), version = one.version + 1,
          actor_type = ${actor.actorType}, actor_id = ${actor.actorId}
        from unnest(${locked}::uuid[], ${eventIds}::uuid[]) as turned(id, event_id)
        where one.id = turned.id
        returning ${own}, turned.event_id, ${isDeleted ? sql`'{}'::text[]` : allProperties(sql)} as changed_properties
      ), ${recording(sql, "relationship", type, author)}
      ${answer}`
  })

  /** Deletes or restores one locked relationship. */
  const turn = Effect.fnUntraced(function* (locked: RelationshipId, type: Turn, author: Author) {
    const [row] = yield* turning([locked], type, author, sql`select ${columns}, event_id from changed`)
    return row && { row, eventId: row.eventId }
  })

  /** Deletes or restores all of these locked relationships. */
  const turnAll = (locked: ReadonlyArray<RelationshipId>, type: Turn, author: Author) =>
    Effect.forEach(
      Arr.chunksOf(locked, graphLimits.turnedRelationships),
      (piece) => turning(piece, type, author, sql`select from changed limit 0`),
      { discard: true }
    )

  /** Locks the relationships that begin or end at a locked object. */
  const lockAround = Effect.fnUntraced(function* (id: ObjectId) {
    const rows = yield* sql<{ readonly id: RelationshipId }>`
      select id from kb.graph_relationships where (from_id = ${id} or to_id = ${id}) and deleted_at is null order by id for update`
    return rows.map((row) => row.id)
  })

  /** Locks the relationships deleted together with a locked object whose other end, if any, is live. */
  const lockFallen = Effect.fnUntraced(function* (id: ObjectId) {
    const rows = yield* sql<{ readonly id: RelationshipId }>`
      select one.id from kb.graph_objects fallen
      join kb.graph_relationships one on (one.from_id = fallen.id or one.to_id = fallen.id) and one.deleted_at = fallen.deleted_at
      join kb.graph_objects other on other.id in (one.from_id, one.to_id)
        and (other.id <> fallen.id and other.deleted_at is null or one.from_id = one.to_id)
      where fallen.id = ${id} order by one.id for update of one for key share of other`
    return rows.map((row) => row.id)
  })

  return {
    holdEnds,
    create,
    find,
    lock,
    turn,
    turnAll,
    lockAround,
    lockFallen
  }
})

/** The direction of a relationship's change: deleted, or created again. */
type Turn = Extract<ChangeType, "created" | "deleted">
