/**
 * Updates an object or relationship by a merge patch, or puts whole values in, in one statement.
 *
 * Flow: **graph** → outbox → dispatch → run → tool → task
 *
 * The database locks the row, merges the patch into what it finds and judges the
 * result at that moment, so no update is made to a state that somebody has
 * changed meanwhile. What changes nothing writes nothing. Another mark on the same
 * value is a change: whoever takes the mark away vouches for the value.
 */
import { byCodePoint } from "@tropism/domain/code-points"
import type { GraphEventId, ObjectId, RelationshipId } from "@tropism/domain/ids"
import { findPropertiesFault, type Properties } from "@tropism/domain/json"
import { Effect } from "effect"
import type { SqlClient, Statement } from "effect/sql"
import { ProjectTransaction } from "../database/database.ts"
import type { Ids } from "../ids.ts"
import { graphLimits } from "../limits.ts"
import { type Author, columnsOf, type Content, type EntityKind, kinds, recording } from "./recording.ts"
import { refused } from "./refused.ts"

/** How an update went. */
interface Verdict {
  /** `inspect`: nothing was written yet, because the result is large enough to break a bound; `properties` are the result. */
  readonly verdict: "updated" | "unchanged" | "version" | "inspect"
}

/** Values that take the place of what was there, nothing merged and every null kept, and properties that go. */
export interface Replacement {
  readonly set: Properties
  /** Which of them are untrusted. */
  readonly untrusted: ReadonlyArray<string>
  readonly remove: ReadonlyArray<string>
}

/** The row as it is now, and whether it was changed; undefined when there is none. */
export const makeMerging = (sql: SqlClient.SqlClient, ids: Ids["Service"]) => {
  const write = makeWriting(sql, ids)
  return <Row extends { readonly properties: Properties }>(kind: EntityKind) =>
    (
      id: ObjectId | RelationshipId,
      { properties: patch, untrusted }: Content,
      expectedVersion: number | undefined,
      author: Author
    ) => {
      const text = JSON.stringify(patch)
      return write<Row>(kind, {
        id,
        names: Object.keys(patch),
        after: sql`kb.merge_patch(properties, ${text}::text::jsonb)`,
        marked: sql`kb.marks_after(untrusted, ${text}::text::jsonb, after, ${untrusted}::text[])`,
        expectedVersion,
        author
      })
    }
}

/** Like `makeMerging`, for values that are put in whole. */
export const makeReplacing = (sql: SqlClient.SqlClient, ids: Ids["Service"]) => {
  const write = makeWriting(sql, ids)
  return <Row extends { readonly properties: Properties }>(kind: EntityKind) =>
    (
      id: ObjectId | RelationshipId,
      { remove, set, untrusted }: Replacement,
      expectedVersion: number | undefined,
      author: Author
    ) => {
      const names = [...Object.keys(set), ...remove]
      return write<Row>(kind, {
        id,
        names,
        after: sql`(properties - ${remove}::text[]) || ${JSON.stringify(set)}::text::jsonb`,
        marked: sql`array(
          select name from (select unnest(untrusted) as name except select unnest(${names}::text[]) union select unnest(${untrusted}::text[])) mark
          order by name collate "C")`,
        expectedVersion,
        author
      })
    }
}

const makeWriting =
  (sql: SqlClient.SqlClient, ids: Ids["Service"]) =>
  <Row extends { readonly properties: Properties }>(kind: EntityKind, wanted: Omit<Merge, "eventId">) =>
    Effect.gen(function* () {
      const eventId = (yield* ids.next) as GraphEventId
      const [row] = yield* merge<Row>(sql, kind, { ...wanted, eventId }, false)
      if (row?.verdict !== "inspect") return row && { row, verdict: row.verdict, eventId }
      // Neither way deepens anything; only size and the number of keys can break their bounds, and neither in a small text.
      const fault = findPropertiesFault(row.properties)
      if (fault) return yield* refused("invalid", fault.message, fault.pointer)
      // The row has been locked since, so this is the result that was inspected.
      const [again] = yield* merge<Row>(sql, kind, { ...wanted, eventId }, true)
      return again && { row: again, verdict: again.verdict, eventId }
    })

interface Merge {
  readonly id: ObjectId | RelationshipId
  /** The properties that may change. */
  readonly names: ReadonlyArray<string>
  /** What comes of the present `properties`. */
  readonly after: Statement.Fragment
  /** What comes of the present `untrusted`; it may ask for what comes of the properties, `after`. */
  readonly marked: Statement.Fragment
  readonly expectedVersion: number | undefined
  readonly author: Author
  readonly eventId: GraphEventId
}

const merge = Effect.fnUntraced(function* <Row>(
  sql: SqlClient.SqlClient,
  kind: EntityKind,
  { id, names, after, marked, expectedVersion, author, eventId }: Merge,
  isInspected: boolean
) {
  const { projectId } = yield* ProjectTransaction
  const { actor } = author
  const table = sql.literal(kinds[kind].table)
  const columns = sql.literal(kinds[kind].columns)
  const shown = sql.literal(
    kinds[kind].columns.replace(
      "properties",
      "case judged.verdict when 'inspect' then after else properties end"
    )
  )
  return yield* sql<Row & Verdict>`
    with found as materialized (
      select ${columns} from ${table} where id = ${id} and project_id = ${projectId} and deleted_at is null for no key update
    ), judged as materialized (
      select id as judged_id, properties as before, after, untrusted as marked_before, marked, case
        when version <> coalesce(${expectedVersion ?? null}::bigint, version) then 'version'
        when after = properties and marked <@ untrusted and untrusted <@ marked then 'unchanged'
        when not ${isInspected}::boolean and octet_length(after::text) > ${graphLimits.uninspectedBytes}::int then 'inspect'
        else 'updated' end as verdict
      from found, lateral (select ${after} as after offset 0) edited, lateral (select ${marked} as marked offset 0) marks
    ), changed as (
      update ${table} one set properties = after, untrusted = marked, version = one.version + 1,
        updated_at = greatest(now(), one.updated_at), actor_type = ${actor.actorType}, actor_id = ${actor.actorId}
      from judged where one.id = judged_id and verdict = 'updated'
      returning ${sql.literal(columnsOf("one", kinds[kind].columns))}, ${eventId}::uuid as event_id, array(
        select name from unnest(${names.toSorted(byCodePoint)}::text[]) with ordinality as named(name, place)
        where before -> name is distinct from after -> name or (name = any (marked_before)) <> (name = any (marked)) order by place) as changed_properties
    ), ${recording(sql, kind, "updated", author)}
    select judged.verdict, now_is.* from judged, lateral (
      select ${columns} from changed
      union all
      select ${shown} from found where verdict <> 'updated'
    ) now_is`
})
