/**
 * The items of an undo: kept as versions and names, read with the values that these had.
 *
 * Flow: graph → outbox → dispatch → run → tool → **task**
 *
 * Versions never change, so what an item says is what was planned; of a purged
 * entity no value is left, here neither.
 */
import type { EntityType } from "@tropism/domain/graph"
import { canonicalJson } from "@tropism/domain/json"
import type { GraphEventId, TaskId } from "@tropism/domain/ids"
import type { UndoAction, UndoItem, UndoPayload, UndoStatus } from "@tropism/domain/undo"
import { Effect, type Schema } from "effect"
import { SqlClient } from "effect/sql"
import { ProjectTransaction } from "../database/database.ts"
import { digestOf } from "./digest.ts"
import type { Wrote } from "./undo-facts.ts"
import type { Planned } from "./undo-planning.ts"

/** An item without what it says. */
export interface ItemHead {
  readonly id: string
  readonly place: number
  readonly entityType: EntityType
  readonly objectType: string
  readonly action: UndoAction
  readonly status: UndoStatus
  readonly version: number
  readonly wrote: ReadonlyArray<Wrote>
  /** The events that it takes back. */
  readonly events: ReadonlyArray<GraphEventId>
}

export const makeUndoItems = Effect.gen(function* () {
  const sql = yield* SqlClient.SqlClient

  /** Keeps the items of a plan. */
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

  /** The items of the present plan behind a place, with their values; with `places` those alone. */
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

  /** Marks what a person left out. */
  const leaveOut = (taskId: TaskId, revision: number, ids: ReadonlyArray<string>) =>
    ids.length === 0
      ? Effect.void
      : Effect.asVoid(sql`
          update kb.undo_items set left_out = true where task_id = ${taskId} and revision = ${revision} and entity_id = any(${ids}::uuid[])`)

  return { keep, read, heads, leaveOut }
})

/** What binds an approval to the plan that a person saw. */
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
