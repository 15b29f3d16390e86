/**
 * Plans an undo: one item for each entity that a cause touched.
 *
 * `domain/inverse.ts` decides by each entity's own facts how it is reverted. This file checks the rest of the graph:
 * what is related to an object to be deleted, and what has replaced an entity to be restored. Nothing is locked; the
 * approval requires every planned version or does nothing.
 */
import type { EntityType } from "@tropism/domain/graph"
import type { AgentId, GraphEventId, TaskId } from "@tropism/domain/ids"
import {
  type Draft,
  draftInverse,
  inConflict,
  type EntityFacts,
  type LaterChange
} from "@tropism/domain/inverse"
import { canonicalJson } from "@tropism/domain/json"
import {
  type Reverted,
  undoBounds,
  type UndoCause,
  type UndoAction,
  type UndoItem,
  type UndoPayload,
  type UndoStatus
} from "@tropism/domain/undo"
import { Effect, Schema } from "effect"
import { SqlClient } from "effect/sql"
import { ProjectTransaction, onlyRow } from "../database/database.ts"
import { objectNamed } from "../graph/objects.ts"
import { type EntityKind, kinds } from "../graph/recording.ts"
import { undoLimits } from "./limits.ts"
import { digestOf } from "./task-digest.ts"

/** One item of a plan. */
export interface Planned {
  readonly known: Known
  readonly draft: Draft
}

export const makeUndoPlanning = Effect.gen(function* () {
  const sql = yield* SqlClient.SqlClient
  const { factsOf } = yield* makeUndoFacts

  /** Objects to keep, because a remaining entity is related to them. */
  const relatedTo = Effect.fnUntraced(function* (plan: ReadonlyArray<Planned>) {
    const objects = idsOf(plan, "graphObject", "delete")
    const falling = idsOf(plan, "relationship", "delete")
    if (objects.length === 0) return new Map<string, string>()
    const at = (end: "from_id" | "to_id") => sql`(
      select one.type, one.id from kb.graph_relationships one where one.${sql.literal(end)} = object.id and one.deleted_at is null
        and not one.id = any(${falling}::uuid[]) limit 1)`
    const rows = yield* sql<{ readonly id: string; readonly type: string }>`
      select distinct on (object.id) object.id, one.type from unnest(${objects}::uuid[]) object(id)
      cross join lateral (${at("from_id")} union all ${at("to_id")}) one`
    return new Map(
      rows.map(({ id, type }) => [id, `A relationship of type ${type} that stays is at it, so it stays.`])
    )
  })

  /** Objects not to restore, because another has their key: one that remains or one that was deleted later. */
  const displaced = Effect.fnUntraced(function* (plan: ReadonlyArray<Planned>) {
    const objects = idsOf(plan, "graphObject", "restore")
    if (objects.length === 0) return new Map<string, string>()
    const rows = yield* sql<{ readonly id: string; readonly type: string }>`
      select gone.id, gone.type from kb.graph_objects gone where gone.id = any(${objects}::uuid[]) and (exists (
        select 1 from kb.graph_objects taken where taken.project_id = gone.project_id and taken.type = gone.type and taken.key = gone.key
          and taken.deleted_at is null and not taken.id = any(${idsOf(plan, "graphObject", "delete")}::uuid[])
      ) or exists (
        select 1 from kb.graph_objects twin where twin.id = any(${objects}::uuid[]) and twin.type = gone.type and twin.key = gone.key
          and (twin.updated_at, twin.id) > (gone.updated_at, gone.id)
      ))`
    return new Map(rows.map(({ id, type }) => [id, `Another ${type} has its key, so it stays deleted.`]))
  })

  /** Relationships not to restore, because an end is missing or another connects the ends. */
  const unplaced = Effect.fnUntraced(function* (plan: ReadonlyArray<Planned>) {
    const relationships = idsOf(plan, "relationship", "restore")
    if (relationships.length === 0) return new Map<string, string>()
    const going = idsOf(plan, "graphObject", "delete")
    const coming = idsOf(plan, "graphObject", "restore")
    const isThere = (end: string) =>
      sql`(${sql.literal(end)}.deleted_at is null and not ${sql.literal(end)}.id = any(${going}::uuid[]) or ${sql.literal(end)}.id = any(${coming}::uuid[]))`
    const rows = yield* sql<{ readonly id: string; readonly hasEnds: boolean }>`
      select gone.id, ${isThere("start")} and ${isThere("finish")} as has_ends from kb.graph_relationships gone
      join kb.graph_objects start on start.id = gone.from_id join kb.graph_objects finish on finish.id = gone.to_id
      where gone.id = any(${relationships}::uuid[]) and (not (${isThere("start")} and ${isThere("finish")}) or exists (
        select 1 from kb.graph_relationships taken where taken.project_id = gone.project_id and taken.type = gone.type
          and taken.from_id = gone.from_id and taken.to_id = gone.to_id and taken.deleted_at is null
          and not taken.id = any(${idsOf(plan, "relationship", "delete")}::uuid[])
      ) or exists (
        select 1 from kb.graph_relationships twin where twin.id = any(${relationships}::uuid[]) and twin.type = gone.type
          and twin.from_id = gone.from_id and twin.to_id = gone.to_id and (twin.updated_at, twin.id) > (gone.updated_at, gone.id)
      ))`
    return new Map(
      rows.map(({ hasEnds, id }) => [
        id,
        hasEnds
          ? "Another relationship like it is there, so it stays deleted."
          : "An object at one of its ends is deleted and stays so."
      ])
    )
  })

  /** The items, ready ones first. */
  const plan = Effect.fnUntraced(function* (touched: ReadonlyArray<Touched>) {
    const drafts: Array<Planned> = []
    for (let from = 0; from < touched.length; from += undoLimits.factsEntities) {
      const page = touched.slice(from, from + undoLimits.factsEntities)
      const known = [
        ...(yield* factsOf("object", page.filter(isObject))),
        ...(yield* factsOf(
          "relationship",
          page.filter((one) => !isObject(one))
        ))
      ]
      drafts.push(...known.map((facts) => ({ known: facts, draft: draftInverse(facts) })))
    }
    // Each query covers the items that the earlier ones left ready.
    let planned: ReadonlyArray<Planned> = drafts
    for (const ask of [relatedTo, displaced, unplaced]) planned = kept(planned, yield* ask(planned))
    return planned.toSorted((a, b) => rankOf(a) - rankOf(b))
  })

  return { plan }
})

const isObject = ({ entityType }: Touched): boolean => entityType === "graphObject"

/** The entities of one kind with the same action. */
const idsOf = (
  plan: ReadonlyArray<Planned>,
  entityType: Touched["entityType"],
  action: Draft["action"]
): ReadonlyArray<string> =>
  plan.flatMap(({ draft, known }) =>
    known.entityType === entityType && draft.action === action && draft.status === "ready"
      ? [known.touched.id]
      : []
  )

const kept = (plan: ReadonlyArray<Planned>, reasons: ReadonlyMap<string, string>): ReadonlyArray<Planned> =>
  plan.map(({ draft, known }) => {
    const reason = reasons.get(known.touched.id)
    return { known, draft: reason === undefined ? draft : inConflict(draft, reason) }
  })

const ranks = { ready: 0, conflict: 2, unneeded: 4 } as const

const rankOf = ({ draft, known }: Planned): number =>
  ranks[draft.status] + (known.entityType === "graphObject" ? 0 : 1)

// Reads what a cause did to each object and relationship, and the changes after it.
//
// The database folds each property from the names in events; the content of versions is read only to compare single values. The
// cost grows with the changes of the touched entities since the cause first touched them.

/** What an agent's version did to an entity. */
type Wrote = Pick<Reverted, "agentId" | "agentVersion" | "operation">

/** An entity that a cause changed. */
interface Touched {
  readonly id: string
  readonly entityType: EntityType
  readonly objectType: string
  /** The versions that the cause made. */
  readonly versions: ReadonlyArray<number>
  /** The events of these versions. */
  readonly events: ReadonlyArray<GraphEventId>
  readonly wrote: ReadonlyArray<Wrote>
}

/** A touched entity with its current state. */
interface Known extends EntityFacts {
  readonly touched: Touched
  /** Its current version. */
  readonly version: number
}

export const makeUndoFacts = Effect.gen(function* () {
  const sql = yield* SqlClient.SqlClient
  const { causing } = yield* makeUndoCauses

  /** The entities that a cause changed, at most one more than an undo may have, and their total. */
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
    /** Null for the existence of the entity. */
    readonly property: string | null
    readonly backVersion: number
    /** The operation of the version before; null when there was none. */
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

// Stores the items of an undo as versions and names, and reads them with the values of these versions.
//
// Versions never change, so an item reads as it was planned. Values of a purged entity are gone here too.

/** An item without its values. */
export interface ItemHead {
  readonly id: string
  readonly place: number
  readonly entityType: EntityType
  readonly objectType: string
  readonly action: UndoAction
  readonly status: UndoStatus
  readonly version: number
  readonly wrote: ReadonlyArray<Wrote>
  /** The events that it reverts. */
  readonly events: ReadonlyArray<GraphEventId>
}

export const makeUndoItems = Effect.gen(function* () {
  const sql = yield* SqlClient.SqlClient

  /** Stores the items of a plan. */
  const keep = Effect.fnUntraced(function* (taskId: TaskId, revision: number, plan: ReadonlyArray<Planned>) {
    const { projectId } = yield* ProjectTransaction
    const rows = plan.map(({ draft, known: { touched, version } }, index) => ({
      ...draft,
      place: index + 1,
      entityType: touched.entityType,
      entityId: touched.id,
      objectType: touched.objectType,
      version,
      wrote: touched.wrote,
      events: touched.events
    }))
    yield* sql`
      insert into kb.undo_items (project_id, task_id, revision, place, entity_type, entity_id, object_type, action, status, reason, version, properties, wrote, events)
      select ${projectId}, ${taskId}, ${revision}, place, "entityType", "entityId", "objectType", action, status, reason, version, properties, wrote, events
      from jsonb_to_recordset(${JSON.stringify(rows)}::text::jsonb) as row(place int, "entityType" text, "entityId" uuid, "objectType" text,
        action text, status text, reason text, version int, properties jsonb, wrote jsonb, events uuid[])`
  })

  /** The items of the current plan after a position, with their values; with `places` only those. */
  const read = Effect.fnUntraced(function* (
    taskId: TaskId,
    asked: { readonly after: number; readonly limit: number } | { readonly places: ReadonlyArray<number> }
  ) {
    const { projectId } = yield* ProjectTransaction
    const [which, most] =
      "places" in asked
        ? [sql`item.place = any(${asked.places}::int[])`, asked.places.length]
        : [sql`item.place > ${asked.after}::bigint`, asked.limit]
    const rows = yield* sql<ItemRow>`
      select item.entity_id as id, item.place, item.entity_type, item.object_type, object.key, item.action, item.status, item.reason,
        item.version, item.left_out, coalesce(valued.properties, '[]') as properties
      from kb.tasks task join kb.undo_items item on item.task_id = task.id and item.revision = task.revision
      left join kb.graph_objects object on object.id = item.entity_id
      left join lateral (
        select jsonb_agg(jsonb_build_object('property', one.property, 'status', one.status,
            'now', now_is.properties -> one.property, 'hasNow', coalesce(now_is.properties ? one.property, false),
            'back', was.properties -> one.property, 'hasBack', coalesce(was.properties ? one.property, false),
            'isUntrusted', coalesce(one.property = any (was.untrusted), false)) order by one.property collate "C")
          as properties
        from jsonb_to_recordset(item.properties) as one(property text, status text, "backVersion" int)
        left join lateral (
          select properties from kb.graph_object_versions where object_id = item.entity_id and version = item.version
          union all select properties from kb.graph_relationship_versions where relationship_id = item.entity_id and version = item.version
        ) now_is on true
        left join lateral (
          select properties, untrusted from kb.graph_object_versions where object_id = item.entity_id and version = one."backVersion"
          union all select properties, untrusted from kb.graph_relationship_versions where relationship_id = item.entity_id and version = one."backVersion"
        ) was on true
      ) valued on true
      where task.id = ${taskId} and task.project_id = ${projectId} and ${which} order by item.place limit ${most}`
    return rows.map(toItem)
  })

  /** All items of a plan. */
  const heads = (taskId: TaskId, revision: number) =>
    sql<ItemHead>`
      select entity_id as id, place, entity_type, object_type, action, status, version, wrote, events from kb.undo_items
      where task_id = ${taskId} and revision = ${revision} order by place`

  /** Marks the items that a person left out. */
  const leaveOut = (taskId: TaskId, revision: number, ids: ReadonlyArray<string>) =>
    ids.length === 0
      ? Effect.void
      : Effect.asVoid(sql`
          update kb.undo_items set left_out = true where task_id = ${taskId} and revision = ${revision} and entity_id = any(${ids}::uuid[])`)

  return { keep, read, heads, leaveOut }
})

/** Returns the digest that binds an approval to the plan the person saw. */
export const planDigest = (
  cause: UndoPayload["cause"],
  plan: ReadonlyArray<Planned>
): Effect.Effect<string> =>
  digestOf(
    canonicalJson({
      cause,
      items: plan.map(({ draft, known: { touched, version } }) => ({ id: touched.id, version, ...draft }))
    })
  )

interface ItemRow extends Omit<UndoItem, "properties"> {
  readonly properties: ReadonlyArray<{
    readonly property: string
    readonly status: UndoStatus
    readonly now: Schema.Json
    readonly hasNow: boolean
    readonly back: Schema.Json
    readonly hasBack: boolean
    readonly isUntrusted: boolean
  }>
}

const toItem = ({ properties, ...row }: ItemRow): UndoItem => ({
  ...row,
  properties: properties.map(({ back, hasBack, hasNow, isUntrusted, now, property, status }) => ({
    property,
    status,
    ...(hasNow ? { now } : {}),
    ...(hasBack ? { back } : {}),
    ...(hasBack && isUntrusted ? { untrusted: true } : {})
  }))
})

// Finds a cause that can be undone, and its work in progress.
//
// A run's work includes that of all its sub-runs. An approved suggestion counts as work of the run that suggested it. Reads
// tables of later modules and imports none of their code.

/** An existing cause. */
export interface FoundCause {
  readonly title: string
  /** The chain that shows the undo. */
  readonly rootEventId: GraphEventId | null
}

export const makeUndoCauses = Effect.gen(function* () {
  const sql = yield* SqlClient.SqlClient

  /** `causing (id)`: the runs of a cause, as a part of a `with recursive`. */
  const causing = Effect.fnUntraced(function* (cause: UndoCause) {
    const { projectId } = yield* ProjectTransaction
    const first =
      cause.type === "run"
        ? sql`id = ${cause.runId}`
        : cause.type === "agentVersion"
          ? sql`agent_id = ${cause.agentId} and agent_version = ${cause.version}`
          : sql`root_event_id = ${cause.rootEventId}`
    return sql`causing as (
      select id from kb.agent_runs where project_id = ${projectId} and ${first}
      union
      select child.id from causing join kb.agent_runs child on child.parent_run_id = causing.id
    )`
  })

  const find = Effect.fnUntraced(function* (cause: UndoCause) {
    const { projectId } = yield* ProjectTransaction
    const ofProject = sql`project_id = ${projectId}`
    const rows = yield* cause.type === "run"
      ? sql<FoundCause>`
          select 'Undo a run of ' || agent.name as title, run.root_event_id from kb.agent_runs run join kb.agents agent on agent.id = run.agent_id
          where run.id = ${cause.runId} and run.${ofProject}`
      : cause.type === "agentVersion"
        ? sql<FoundCause>`
            select 'Undo ' || agent.name || ' version ' || version.version as title, null::uuid as root_event_id
            from kb.agent_versions version join kb.agents agent on agent.id = version.agent_id
            where version.agent_id = ${cause.agentId} and version.version = ${cause.version}::int and agent.${ofProject}`
        : sql<FoundCause>`
            select 'Undo the chain of ' || first.what as title, ${cause.rootEventId}::uuid as root_event_id from (
              select event.object_type || ' ' || coalesce(entity.subject ->> 'name', '…' || right(event.entity_id::text, 8)) || ' ' || event.type as what
              from kb.graph_events event
              left join lateral (
                select ${objectNamed(sql, sql`event.project_id`, sql`event.entity_id`)} as subject where event.entity_type = 'graphObject'
              ) entity on true
              where event.id = ${cause.rootEventId} and event.root_event_id = event.id and event.${ofProject}
              union all
              select 'a run of ' || agent.name from kb.agent_runs run join kb.agents agent on agent.id = run.agent_id
              where run.id = ${cause.rootEventId} and run.root_event_id = run.id and run.${ofProject}
            ) first limit 1`
    return rows[0]
  })

  /** The number of a cause's runs that may still write, and one of them. */
  const atWork = Effect.fnUntraced(function* (cause: UndoCause) {
    return yield* Effect.flatMap(
      sql<{ readonly count: number; readonly runId: string | null }>`
        with recursive ${yield* causing(cause)}
        select count(*)::int as count, min(run.id::text) as run_id from causing join kb.agent_runs run on run.id = causing.id
        where run.status in ('queued', 'running')`,
      onlyRow
    )
  })

  /** Whether a cause changed the graph. */
  const hasChanged = Effect.fnUntraced(function* (cause: UndoCause) {
    const { changed } = yield* Effect.flatMap(
      sql<{ readonly changed: boolean }>`
        with recursive ${yield* causing(cause)}
        select exists (select 1 from causing join kb.graph_events event on event.run_id = causing.id) as changed`,
      onlyRow
    )
    return changed
  })

  /** The number of a cause's open suggestions. */
  const countSuggestions = Effect.fnUntraced(function* (cause: UndoCause) {
    const { count } = yield* Effect.flatMap(
      sql<{ readonly count: number }>`
        with recursive ${yield* causing(cause)}
        select count(*)::int as count from causing join kb.tasks task on task.run_id = causing.id
        where task.status = 'pending' and task.type like '%_suggestion'`,
      onlyRow
    )
    return count
  })

  /** Expires a cause's open suggestions and returns how many. */
  const expireSuggestions = Effect.fnUntraced(function* (
    cause: UndoCause,
    undo: { readonly number: bigint }
  ) {
    const { projectId } = yield* ProjectTransaction
    const rows = yield* sql`
      with recursive ${yield* causing(cause)}, open as (
        select task.id from causing join kb.tasks task on task.run_id = causing.id
        where task.status = 'pending' and task.type like '%_suggestion' order by task.id for update of task
      )
      update kb.tasks task set status = 'expired', resolved_at = now(),
        resolution_note = ${`What its run did was undone by task ${undo.number}`}
      from open where task.id = open.id and task.project_id = ${projectId} and task.status = 'pending' returning task.id`
    return rows.length
  })

  return { causing, find, atWork, hasChanged, countSuggestions, expireSuggestions }
})

// Why an undo was not planned or not applied; nothing was written.

export class UndoRefused extends Schema.TaggedError<UndoRefused>()("UndoRefused", {
  /** `notInPlan`: an item that the person wants to leave out cannot be left out. */
  reason: Schema.Literals(["state", "alreadyDecided", "outdated", "notInPlan"]),
  detail: Schema.String
}) {}
