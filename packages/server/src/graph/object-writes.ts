/**
 * The statements that create and restore objects: one verb, one statement. `entity-writes.ts` updates and deletes them.
 *
 * Flow: **graph** → outbox → dispatch → run → tool → task
 *
 * Each answers what it did, or nothing where there was nothing to do it to. May
 * somebody do it, and is the content fit to be kept? That is asked by the
 * gateway, which is the only one who calls these.
 */
import type { Actor } from "@tropism/domain/actor"
import { byCodePoint } from "@tropism/domain/code-points"
import type { GraphEventId, ObjectId } from "@tropism/domain/ids"
import { Effect } from "effect"
import { SqlClient } from "effect/sql"
import { onlyRow, ProjectTransaction } from "../database/database.ts"
import { Ids } from "../ids.ts"
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
  recording
} from "./recording.ts"
import type { ObjectRow } from "./rows.ts"

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

  /** Creates objects; of a key that another object has nothing is created. */
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

  /** The type of an object that is there; nothing is locked, and a type never changes. */
  const typeOf = Effect.fnUntraced(function* (id: ObjectId) {
    const { projectId } = yield* ProjectTransaction
    const [row] = yield* sql<{ readonly type: string }>`
      select type from kb.graph_objects where id = ${id} and project_id = ${projectId} and deleted_at is null`
    return row?.type
  })

  /** Who has a key; nothing is locked. */
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

  /** Brings a locked object back as it was; breaks the unique key when another has taken its place. */
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
