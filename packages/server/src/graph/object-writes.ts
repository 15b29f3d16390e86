/**
 * The statements that write objects: one verb, one statement.
 *
 * Flow: **graph** → outbox → dispatch → run → tool → task
 *
 * Each answers what it did, or nothing where there was nothing to do it to. May
 * somebody do it, and is the content fit to be kept? That is asked by the
 * gateway, which is the only one who calls these.
 */
import { byCodePoint } from "@tropism/domain/code-points"
import type { GraphEventId, ObjectId } from "@tropism/domain/ids"
import { Effect } from "effect"
import { SqlClient } from "effect/sql"
import { onlyRow, ProjectTransaction } from "../database/database.ts"
import { Ids } from "../ids.ts"
import { makeMerging, makeReplacing } from "./merging.ts"
import { allProperties, type Author, type Content, objectColumns, recording } from "./recording.ts"
import type { ObjectRow } from "./rows.ts"

export const makeObjectWrites = Effect.gen(function* () {
  const sql = yield* SqlClient.SqlClient
  const ids = yield* Ids
  const nextEventId = Effect.map(ids.next, (id) => id as GraphEventId)
  const columns = sql.literal(objectColumns)

  const create = Effect.fnUntraced(function* (
    type: string,
    key: string | null,
    { properties, untrusted }: Content,
    author: Author
  ) {
    const { projectId } = yield* ProjectTransaction
    const { actor } = author
    const eventId = yield* nextEventId
    const [row] = yield* sql<ObjectRow>`
      with changed as (
        insert into kb.graph_objects (id, project_id, type, key, properties, untrusted, version, actor_type, actor_id)
        values (${yield* ids.next}, ${projectId}, ${type}, ${key}, ${JSON.stringify(properties)}::text::jsonb, ${untrusted}::text[], 1, ${actor.actorType}, ${actor.actorId})
        on conflict (project_id, type, key) where deleted_at is null do nothing
        returning ${columns}, ${eventId}::uuid as event_id, ${Object.keys(properties).toSorted(byCodePoint)}::text[] as changed_properties
      ), ${recording(sql, "object", "created", author)}
      select ${columns} from changed`
    return row && { row, eventId }
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

  /** Deletes an object that is locked. */
  const remove = Effect.fnUntraced(function* (id: ObjectId, author: Author) {
    const { actor } = author
    const eventId = yield* nextEventId
    const rows = yield* sql<ObjectRow>`
      with changed as (
        update kb.graph_objects object set deleted_at = now(), updated_at = greatest(now(), updated_at), version = version + 1,
          actor_type = ${actor.actorType}, actor_id = ${actor.actorId}
        where id = ${id} returning ${columns}, ${eventId}::uuid as event_id, '{}'::text[] as changed_properties
      ), ${recording(sql, "object", "deleted", author)}
      select ${columns} from changed`
    return { row: yield* onlyRow(rows), eventId }
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

  return {
    create,
    update: makeMerging(sql, ids)<ObjectRow>("object"),
    replace: makeReplacing(sql, ids)<ObjectRow>("object"),
    typeOf,
    holderOf,
    lock,
    remove,
    restore
  }
})
