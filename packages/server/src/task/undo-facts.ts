/**
 * Reads what a cause did to each object and relationship, and what came after it.
 *
 * Flow: graph → outbox → dispatch → run → tool → **task**
 *
 * Each property is folded by the database from the names that events say they
 * changed; no version's content is read but to compare single values. The cost
 * follows the changes of the touched entities since the cause first touched them.
 */
import type { EntityType } from "@tropism/domain/graph"
import type { AgentId, GraphEventId } from "@tropism/domain/ids"
import type { EntityFacts, LaterChange } from "@tropism/domain/inverse"
import { type Reverted, undoBounds, type UndoCause } from "@tropism/domain/undo"
import { Effect } from "effect"
import { SqlClient } from "effect/sql"
import { ProjectTransaction } from "../database/database.ts"
import { type EntityKind, kinds } from "../graph/recording.ts"
import { makeUndoCauses } from "./undo-cause.ts"

/** What a version of an agent did to an entity. */
export type Wrote = Pick<Reverted, "agentId" | "agentVersion" | "operation">

/** An entity that a cause changed. */
export interface Touched {
  readonly id: string
  readonly entityType: EntityType
  readonly objectType: string
  /** The versions that the cause made. */
  readonly versions: ReadonlyArray<number>
  /** The events of these versions. */
  readonly events: ReadonlyArray<GraphEventId>
  readonly wrote: ReadonlyArray<Wrote>
}

/** A touched entity with what became of it. */
export interface Known extends EntityFacts {
  readonly touched: Touched
  /** Its version now. */
  readonly version: number
}

export const makeUndoFacts = Effect.gen(function* () {
  const sql = yield* SqlClient.SqlClient
  const { causing } = yield* makeUndoCauses

  /** What a cause changed, at most one more than an undo may have, and how much there is in all. */
  const touchedBy = Effect.fnUntraced(function* (cause: UndoCause) {
    const rows = yield* sql<Touched & { readonly total: number }>`
      with recursive ${yield* causing(cause)}
      select event.entity_id as id, event.entity_type, min(event.object_type) as object_type,
        array_agg(event.version order by event.version) as versions, array_agg(event.id) as events, count(*) over ()::int as total,
        jsonb_agg(distinct jsonb_build_object('agentId', run.agent_id, 'agentVersion', run.agent_version, 'operation', event.type)) as wrote
      from causing join kb.graph_events event on event.run_id = causing.id join kb.agent_runs run on run.id = event.run_id
      group by event.entity_id, event.entity_type order by min(event.id::text) limit ${undoBounds.maxEntities + 1}`
    return { touched: rows as ReadonlyArray<Touched>, total: rows[0]?.total ?? 0 }
  })

  const namesOf = Effect.fnUntraced(function* (touched: ReadonlyArray<Touched>) {
    const ids = [...new Set(touched.flatMap(({ wrote }) => wrote.map(({ agentId }) => agentId)))]
    return yield* sql<{ readonly id: AgentId; readonly name: string }>`
      select id, name from kb.agents where id = any(${ids}::uuid[]) order by name, id`
  })

  /** The facts of entities of one kind. */
  const factsOf = Effect.fnUntraced(function* (kind: EntityKind, touched: ReadonlyArray<Touched>) {
    if (touched.length === 0) return []
    const { projectId } = yield* ProjectTransaction
    const asked = JSON.stringify(touched.map(({ id, versions }) => ({ id, versions })))
    const versions = sql.literal(`kb.graph_${kind}_versions before on before.${kind}_id`)
    const rows = yield* sql<FactsRow>`
      with touched as materialized (
        select * from jsonb_to_recordset(${asked}::text::jsonb) as touched(id uuid, versions int[])
      ), since as materialized (
        select event.entity_id as id, event.version, event.type, event.changed_properties, cause.version is not null as is_cause,
          event.actor_type || coalesce(' ' || coalesce(agent.name, event.actor_id), '') as by, undone.version as undone_version,
          (select jsonb_object_agg(one ->> 'property', one -> 'backVersion') from jsonb_array_elements(undone.properties) one) as backs
        from touched
        join kb.graph_events event on event.entity_id = touched.id and event.version >= touched.versions[1] and event.project_id = ${projectId}
        left join (select id, unnest(versions) as version from touched) cause on cause.id = event.entity_id and cause.version = event.version
        left join kb.agents agent on agent.id = case event.actor_type when 'agent' then event.actor_id::uuid end
        left join kb.tasks undo on undo.id = event.task_id and undo.type = 'undo'
        left join kb.undo_items undone on undone.task_id = undo.id and undone.revision = undo.revision and undone.entity_id = event.entity_id
      ), step as (
        -- What each event set: properties, and by null whether it is there. A restoration set no property. What an undo set is as it was at "back".
        select id, version, is_cause, property, (backs -> property)::int as back from since cross join unnest(changed_properties) property
        where type <> 'created' or version = 1
        union all
        select id, version, is_cause, null, case when undone_version is not null then case type when 'deleted' then 0 else undone_version - 1 end end
        from since where type <> 'updated'
      ), seen as (
        -- An undo is seen through: neither it nor what it took back was the last to set anything. One that deletes takes back everything.
        select *, min(back) over (partition by id, property order by version desc rows between unbounded preceding and 1 preceding) as taken_to,
          max(version) filter (where property is null and back = 0) over (partition by id) as ended
        from step
      ), turn as (
        select id, version, is_cause, property, lag(is_cause) over (partition by id, property order by version) as was_cause from seen
        where back is null and version <= coalesce(taken_to, version) and version > coalesce(ended, 0)
      ), fold as (
        select id, property, max(version) filter (where is_cause) as last_cause, max(version) filter (where not is_cause) as last_other,
          min(version) filter (where not is_cause) as first_other, max(version) filter (where is_cause and was_cause is distinct from true) as begun
        from turn group by id, property having bool_or(is_cause)
      ), folded as (
        select fold.id, jsonb_agg(jsonb_build_object('property', fold.property, 'backVersion', fold.begun - 1, 'before', before.type,
          'isSame', (entity.properties -> fold.property) is not distinct from (before.properties -> fold.property)
            and fold.property = any (entity.untrusted) = coalesce(fold.property = any (before.untrusted), false),
          'isOverwritten', coalesce(fold.first_other < fold.begun, false),
          'later', case when later.version is not null then jsonb_build_object('version', later.version, 'by', later.by) end
          ) order by fold.property collate "C") as folds
        from fold join ${sql.literal(kinds[kind].table)} entity on entity.id = fold.id
        left join ${versions} = fold.id and before.version = fold.begun - 1
        left join since later on later.id = fold.id and later.version = fold.last_other and fold.last_other > fold.last_cause
        group by fold.id
      ), other as (
        select distinct on (id) id, jsonb_build_object('version', version, 'by', by) as change from since
        where not is_cause and (id, version) in (select id, version from turn) order by id, version desc
      )
      select touched.id, coalesce(entity.version, 0) as version, entity.deleted_at is not null as is_deleted,
        ${kind === "object" ? sql`entity.purged_at is not null` : sql`entity.id is null`} as is_purged,
        touched.versions[1] = 1 as is_created, other.change as other, coalesce(folded.folds, '[]') as folds
      from touched left join ${sql.literal(kinds[kind].table)} entity on entity.id = touched.id
      left join folded on folded.id = touched.id left join other on other.id = touched.id`
    const byId = new Map(rows.map((row) => [row.id, row]))
    return touched.flatMap((one) => {
      const row = byId.get(one.id)
      return row ? [toKnown(one, row)] : []
    })
  })

  return { touchedBy, namesOf, factsOf }
})

interface FactsRow {
  readonly id: string
  readonly version: number
  readonly isDeleted: boolean
  readonly isPurged: boolean
  readonly isCreated: boolean
  readonly other: LaterChange | null
  readonly folds: ReadonlyArray<{
    /** Null is whether it is there at all. */
    readonly property: string | null
    readonly backVersion: number
    /** What the version before did; null when there was none. */
    readonly before: string | null
    readonly isSame: boolean
    readonly isOverwritten: boolean
    readonly later: LaterChange | null
  }>
}

const toKnown = (touched: Touched, { folds, ...row }: FactsRow): Known => {
  const life = folds.find(({ property }) => property === null)
  return {
    touched,
    entityType: touched.entityType,
    version: row.version,
    isDeleted: row.isDeleted,
    isPurged: row.isPurged,
    isCreated: row.isCreated,
    other: row.other,
    life: life
      ? {
          before: life.backVersion === 0 ? "absent" : life.before === "deleted" ? "deleted" : "live",
          later: life.later
        }
      : null,
    properties: folds.flatMap(({ backVersion, isOverwritten, isSame, later, property }) =>
      property === null ? [] : [{ property, backVersion, isSame, isOverwritten, later }]
    )
  }
}
