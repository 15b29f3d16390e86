/**
 * Updates and deletes objects or relationships, many in one statement, each fenced by its own row.
 *
 * **Invariant** The statement locks the rows in id order, judges each item by the locked row and writes those that pass,
 * so no item overwrites a state that it was not judged by. An update that changes nothing writes nothing. A different
 * untrusted mark on an equal value is a change, because removing the mark vouches for the value.
 */
import type { Actor, Cause } from "@tropism/domain/actor"
import { byCodePoint } from "@tropism/domain/code-points"
import type { GraphEventId, ObjectId, RelationshipId } from "@tropism/domain/ids"
import type { Properties } from "@tropism/domain/json"
import { Effect } from "effect"
import type { SqlClient, Statement } from "effect/sql"
import { ProjectTransaction } from "../database/database.ts"
import type { Ids } from "../ids.ts"
import { graphLimits } from "../limits.ts"
import {
  columnsOf,
  type Content,
  type EntityKind,
  inOrder,
  itemRows,
  kinds,
  type Locked,
  type Planned,
  recording,
  type ObjectRow,
  type RelationshipRow
} from "./recording.ts"

/** Values that replace the old ones without merging (nulls are kept), and properties to remove. */
export interface Replacement {
  readonly set: Properties
  /** Names in `set` whose values are untrusted. */
  readonly untrusted: ReadonlyArray<string>
  readonly remove: ReadonlyArray<string>
}

interface RowOf {
  readonly object: ObjectRow
  readonly relationship: RelationshipRow
}

interface Wanted {
  readonly id: ObjectId | RelationshipId
  readonly expectedVersion: number | undefined
  readonly actor: Actor
}

/** A merge patch or a replacement for one entity. */
export interface Update extends Wanted {
  readonly content: Content | Replacement
}

export type Deletion = Wanted

/** Outcome of an update; the row is the current one. */
export type Updated<Row> =
  | { readonly verdict: "updated" | "unchanged"; readonly row: Row; readonly eventId: GraphEventId }
  | { readonly verdict: "version"; readonly row: Row }
  /** Nothing was written yet: the result is large enough to need a check of its bounds. */
  | { readonly verdict: "inspect"; readonly row: Row }
  | { readonly verdict: "missing" | "undecided" }

/** Outcome of a deletion. */
export type Deleted<Row> =
  | { readonly verdict: "deleted"; readonly row: Row; readonly eventId: GraphEventId }
  | { readonly verdict: "version"; readonly version: number }
  /** The object still has relationships. */
  | { readonly verdict: "related" }
  | { readonly verdict: "missing" | "undecided" }

/** How the statements run: the cause to record, and whether to wait for locked rows. */
export interface Terms {
  readonly cause: Cause
  readonly locked: Locked
}

/**
 * Builds the statements; the caller runs them.
 *
 * **Details** Rows are found by `id = any(…)` even where a join would do: a plan cached when the table was small may read all
 * rows of the project for a join.
 */
export const makeEntityWrites = (sql: SqlClient.SqlClient, ids: Ids["Service"]) => {
  const nextEventId = Effect.map(ids.next, (id) => id as GraphEventId)
  const lockMode = (mode: string, locked: Locked) =>
    sql.literal(locked === "skip" ? `${mode} skip locked` : mode)
  /**
   * For an item whose row was not found: whether another transaction holds the row. Not EXISTS, which the planner may answer by
   * reading all rows of the project.
   */
  const absence = (kind: EntityKind, projectId: string) => sql`
    case when (
      select there.id from ${sql.literal(kinds[kind].table)} there
      where there.id = item.item_id and there.project_id = ${projectId} and there.deleted_at is null
    ) is null then 'missing' else 'undecided' end`

  const update = Effect.fnUntraced(function* <Kind extends EntityKind>(
    kind: Kind,
    updates: ReadonlyArray<Update>,
    { cause, locked }: Terms,
    isInspected = false
  ) {
    const { projectId } = yield* ProjectTransaction
    const eventIds = yield* Effect.forEach(updates, () => nextEventId)
    const table = sql.literal(kinds[kind].table)
    const columns = sql.literal(kinds[kind].columns)
    const shown = sql.literal(
      kinds[kind].columns.replace(
        "properties",
        "case judged.verdict when 'inspect' then after else properties end"
      )
    )
    const items = updates.map(({ actor, content, expectedVersion, id }, place) => ({
      item_id: id,
      event_id: eventIds[place],
      ...("set" in content
        ? {
            is_whole: true,
            patch: content.set,
            removed: content.remove,
            names: [...Object.keys(content.set), ...content.remove].toSorted(byCodePoint)
          }
        : {
            is_whole: false,
            patch: content.properties,
            names: Object.keys(content.properties).toSorted(byCodePoint)
          }),
      marks: content.untrusted,
      expected_version: expectedVersion,
      by_type: actor.actorType,
      by_id: actor.actorId
    }))
    const statement = sql`
      with item as materialized (
        ${itemRows(sql, items, "item_id uuid, event_id uuid, is_whole boolean, patch jsonb, removed text[], names text[], marks text[], expected_version bigint, by_type text, by_id text")}
      ), found as materialized (
        select ${columns} from ${table}
        where id = any(array(select item_id from item)) and project_id = ${projectId} and deleted_at is null
        order by id ${lockMode("for no key update", locked)}
      ), judged as materialized (
        select item_id, event_id, names, by_type, by_id, properties as before, after, untrusted as marked_before, marked, case
          when version <> coalesce(expected_version, version) then 'version'
          when after = properties and marked <@ untrusted and untrusted <@ marked then 'unchanged'
          when not ${isInspected}::boolean and octet_length(after::text) > ${graphLimits.uninspectedBytes}::int then 'inspect'
          else 'updated' end as verdict
        from item join found on id = item_id, lateral (
          select case when is_whole then (properties - removed) || patch else kb.merge_patch(properties, patch) end as after offset 0
        ) edited, lateral (
          select case when is_whole then array(
            select name from (select unnest(untrusted) as name except select unnest(names) union select unnest(marks)) mark
            order by name collate "C") else kb.marks_after(untrusted, patch, after, marks) end as marked offset 0
        ) marking
      ), changed as (
        update ${table} one set properties = after, untrusted = marked, version = one.version + 1,
          updated_at = greatest(now(), one.updated_at), actor_type = by_type, actor_id = by_id
        from judged where one.id = judged.item_id and verdict = 'updated' and one.id = any(array(select item_id from item))
        returning ${sql.literal(columnsOf("one", kinds[kind].columns))}, judged.event_id, array(
          select name from unnest(judged.names) with ordinality as named(name, place)
          where before -> name is distinct from after -> name or (name = any (marked_before)) <> (name = any (marked)) order by place) as changed_properties
      ), ${recording(sql, kind, "updated", { cause })}
      select item.item_id, item.event_id, coalesce(judged.verdict, ${absence(kind, projectId)}) as verdict, now_is.*
      from item left join judged on judged.item_id = item.item_id left join lateral (
        select ${columns} from changed where changed.id = judged.item_id
        union all
        select ${shown} from found where found.id = judged.item_id and judged.verdict <> 'updated'
      ) now_is on true`
    const planned: Planned<Updated<RowOf[Kind]>> = {
      statement,
      outcomes: inOrder(
        updates.map(({ id }) => id),
        (row: RowOf[Kind] & { itemId: string; eventId: GraphEventId; verdict: string }) =>
          ({ verdict: row.verdict, row, eventId: row.eventId }) as Updated<RowOf[Kind]>
      )
    }
    return planned
  })

  /** Deletes entities without relationships; the caller deletes an object's relationships first. */
  const remove = Effect.fnUntraced(function* <Kind extends EntityKind>(
    kind: Kind,
    deletions: ReadonlyArray<Deletion>,
    { cause, locked }: Terms
  ) {
    const { projectId } = yield* ProjectTransaction
    const eventIds = yield* Effect.forEach(deletions, () => nextEventId)
    const table = sql.literal(kinds[kind].table)
    const columns = columnsOf("changed", kinds[kind].columns)
    const items = deletions.map(({ actor, expectedVersion, id }, place) => ({
      item_id: id,
      event_id: eventIds[place],
      expected_version: expectedVersion,
      by_type: actor.actorType,
      by_id: actor.actorId
    }))
    // The function takes its own snapshot after the row lock, and no relationship can be added to a locked object.
    const related: Statement.Fragment = kind === "object" ? sql`when kb.is_related(id) then 'related'` : sql``
    const statement = sql`
      with item as materialized (
        ${itemRows(sql, items, "item_id uuid, event_id uuid, expected_version bigint, by_type text, by_id text")}
      ), found as materialized (
        select id, version from ${table}
        where id = any(array(select item_id from item)) and project_id = ${projectId} and deleted_at is null
        order by id ${lockMode("for update", locked)}
      ), judged as materialized (
        select item_id, event_id, by_type, by_id, version as found_version,
          case when version <> coalesce(expected_version, version) then 'version' ${related} else 'deleted' end as verdict
        from item join found on id = item_id
      ), changed as (
        update ${table} one set deleted_at = now(), updated_at = greatest(now(), one.updated_at), version = one.version + 1,
          actor_type = by_type, actor_id = by_id
        from judged where one.id = judged.item_id and verdict = 'deleted' and one.id = any(array(select item_id from item))
        returning ${sql.literal(columnsOf("one", kinds[kind].columns))}, judged.event_id, '{}'::text[] as changed_properties
      ), ${recording(sql, kind, "deleted", { cause })}
      select item.item_id, item.event_id, found_version, coalesce(judged.verdict, ${absence(kind, projectId)}) as verdict, ${sql.literal(columns)}
      from item left join judged on judged.item_id = item.item_id left join changed on changed.id = item.item_id`
    const planned: Planned<Deleted<RowOf[Kind]>> = {
      statement,
      outcomes: inOrder(
        deletions.map(({ id }) => id),
        (
          row: RowOf[Kind] & { itemId: string; eventId: GraphEventId; foundVersion: number; verdict: string }
        ) =>
          ({ verdict: row.verdict, row, eventId: row.eventId, version: row.foundVersion }) as Deleted<
            RowOf[Kind]
          >
      )
    }
    return planned
  })

  return { update, remove }
}
