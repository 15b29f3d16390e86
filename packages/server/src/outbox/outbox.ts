/**
 * The committed events of the graph: written with the change, claimed once, and read as a feed.
 *
 * **Invariant**: an event is claimed by its mark, never by a cursor over `seq`: sequence numbers are taken before commit, so such a cursor
 * loses events that commit late. Only the holder of the lock on the feed's row marks events, and gives each its position in the project's
 * feed, 1, 2, 3 …, so readers may use positions as cursors. The events' own rows are not locked for this: an event that an open transaction
 * refers to would be skipped, and a later change of its object would come before it. Nothing else marks events, and their content never
 * changes.
 */
import type { ChangeType, GraphEvent, NotedRefusal, EntityType } from "@tropism/domain/graph"
import type { GraphEventId } from "@tropism/domain/ids"
import { Context, Effect, Layer } from "effect"
import { SqlClient } from "effect/sql"
import { Database, orDie, ProjectTransaction, onlyRow } from "../database/database.ts"

/** An event that the dispatcher has locked. */
export type ClaimedEvent = Omit<GraphEvent, "position" | "refusals" | "createdAt"> & {
  readonly createdAt: Date
}

/** The dispatcher's decision about one event. */
export interface Dispatched {
  readonly id: GraphEventId
  readonly refusals: ReadonlyArray<NotedRefusal>
}

export class Outbox extends Context.Service<
  Outbox,
  {
    /** Takes up to `limit` undispatched events, oldest first, for this transaction; none while another one holds the project's feed. */
    readonly claim: (limit: number) => Effect.Effect<ReadonlyArray<ClaimedEvent>, never, ProjectTransaction>
    /** Marks claimed events as dispatched and gives each its position in the feed, in the given order. */
    readonly settle: (dispatched: ReadonlyArray<Dispatched>) => Effect.Effect<void, never, ProjectTransaction>
    /** Records that dispatched events no longer trigger an agent, and why. */
    readonly refuse: (
      refused: ReadonlyArray<NotedRefusal & { readonly id: GraphEventId }>
    ) => Effect.Effect<void, never, ProjectTransaction>
    /** The feed after a position, in order. */
    readonly feed: (
      after: number,
      limit: number
    ) => Effect.Effect<ReadonlyArray<GraphEvent>, never, ProjectTransaction>
    readonly get: (id: GraphEventId) => Effect.Effect<GraphEvent | undefined, never, ProjectTransaction>
    /** The existing events with these ids, in the order of the ids. */
    readonly getAll: (
      ids: ReadonlyArray<GraphEventId>
    ) => Effect.Effect<ReadonlyArray<GraphEvent>, never, ProjectTransaction>
    /** The events of a chain after an id, in order of creation. */
    readonly chain: (
      rootEventId: GraphEventId,
      after: string | undefined,
      limit: number
    ) => Effect.Effect<ReadonlyArray<GraphEvent>, never, ProjectTransaction>
    /** Events of the feed between two positions, newest first. */
    readonly newest: (
      after: number,
      before: number | undefined,
      limit: number
    ) => Effect.Effect<ReadonlyArray<GraphEvent>, never, ProjectTransaction>
    /** The position of the newest event of the feed. */
    readonly lastPosition: Effect.Effect<number, never, ProjectTransaction>
  }
>()("@tropism/server/outbox/Outbox") {
  static readonly layer = Layer.effect(
    Outbox,
    Effect.gen(function* () {
      const sql = yield* SqlClient.SqlClient
      const database = yield* Database

      const claim = Effect.fn("Outbox.claim")(function* (limit: number) {
        const { projectId } = yield* ProjectTransaction
        // The second statement runs after the first has the lock; without the lock its events belong to another server.
        const [feed, events] = yield* database.together(
          sql`select 1 from kb.feeds where project_id = ${projectId} for update skip locked`,
          sql<ClaimedEvent>`
          select id, entity_type, object_type, entity_id, version, type, changed_properties, snapshot, actor_type, actor_id,
            approved_by, run_id, tool_call_id, task_id, root_event_id, depth, undoes, created_at
          from kb.graph_events where project_id = ${projectId} and dispatched_at is null
          order by seq limit ${limit}`
        )
        return feed.length === 0 ? [] : events
      }, orDie)

      const settle = Effect.fn("Outbox.settle")(function* (dispatched: ReadonlyArray<Dispatched>) {
        if (dispatched.length === 0) return
        const { projectId } = yield* ProjectTransaction
        const rows = JSON.stringify(dispatched.map((event, index) => ({ ...event, place: index + 1 })))
        yield* sql`
          with feed as (
            update kb.feeds set last_position = last_position + ${dispatched.length}
            where project_id = ${projectId} returning last_position - ${dispatched.length} as first
          )
          update kb.graph_events event
          set dispatched_at = now(), position = feed.first + row.place, refusals = row.refusals
          from jsonb_to_recordset(${rows}::text::jsonb) as row(id uuid, place int, refusals jsonb), feed
          where event.id = row.id`
      }, orDie)

      const refuse = Effect.fn("Outbox.refuse")(function* (
        refused: ReadonlyArray<NotedRefusal & { readonly id: GraphEventId }>
      ) {
        yield* sql`
          update kb.graph_events event set refusals = event.refusals || more.refusals
          from (
            select row.id, jsonb_agg(jsonb_build_object('agentId', row."agentId", 'rule', row.rule, 'reason', row.reason)) as refusals
            from jsonb_to_recordset(${JSON.stringify(refused)}::text::jsonb) as row(id uuid, "agentId" text, rule text, reason text) group by row.id
          ) more
          where event.id = more.id`
      }, orDie)

      const feed = Effect.fn("Outbox.feed")(function* (after: number, limit: number) {
        const { projectId } = yield* ProjectTransaction
        const rows = yield* sql<EventRow>`
          select * from kb.graph_events where project_id = ${projectId} and position > ${after} order by position limit ${limit}`
        return rows.map(toEvent)
      }, orDie)

      const newest = Effect.fn("Outbox.newest")(function* (
        after: number,
        before: number | undefined,
        limit: number
      ) {
        const { projectId } = yield* ProjectTransaction
        const rows = yield* sql<EventRow>`
          select * from kb.graph_events where project_id = ${projectId} and position > ${after}
            and position < ${before ?? Number.MAX_SAFE_INTEGER} order by position desc limit ${limit}`
        return rows.map(toEvent)
      }, orDie)

      const get = Effect.fn("Outbox.get")(function* (id: GraphEventId) {
        const { projectId } = yield* ProjectTransaction
        const [row] =
          yield* sql<EventRow>`select * from kb.graph_events where project_id = ${projectId} and id = ${id}`
        return row && toEvent(row)
      }, orDie)

      const getAll = Effect.fn("Outbox.getAll")(function* (ids: ReadonlyArray<GraphEventId>) {
        if (ids.length === 0) return []
        const { projectId } = yield* ProjectTransaction
        const rows = yield* sql<EventRow>`
          select event.* from unnest(${ids}::uuid[]) with ordinality as wanted(id, place)
          cross join lateral (
            select * from kb.graph_events where id = wanted.id and project_id = ${projectId} limit 1
          ) event order by wanted.place`
        return rows.map(toEvent)
      }, orDie)

      const chain = Effect.fn("Outbox.chain")(function* (
        rootEventId: GraphEventId,
        after: string | undefined,
        limit: number
      ) {
        const { projectId } = yield* ProjectTransaction
        const rows = yield* sql<EventRow>`
          select * from kb.graph_events where project_id = ${projectId} and root_event_id = ${rootEventId}
            and id > ${after ?? nil}::uuid order by id limit ${limit}`
        return rows.map(toEvent)
      }, orDie)

      const lastPosition = Effect.gen(function* () {
        const { projectId } = yield* ProjectTransaction
        const [row] = yield* sql<{
          lastPosition: bigint
        }>`select last_position from kb.feeds where project_id = ${projectId}`
        return Number(row?.lastPosition ?? 0)
      }).pipe(orDie)

      return Outbox.of({ claim, settle, refuse, feed, newest, get, getAll, chain, lastPosition })
    })
  )
}

/** Before every id. */
const nil = "00000000-0000-0000-0000-000000000000"

/** An event in its row's form. */
interface EventRow extends Omit<GraphEvent, "position" | "undoes" | "createdAt"> {
  readonly undoes: NonNullable<GraphEvent["undoes"]>
  readonly position: bigint | null
  readonly type: ChangeType
  readonly createdAt: Date
}

/** An event in the form for readers. */
const toEvent = (row: EventRow): GraphEvent => ({
  id: row.id,
  position: row.position === null ? null : Number(row.position),
  entityType: row.entityType,
  objectType: row.objectType,
  entityId: row.entityId,
  version: row.version,
  type: row.type,
  changedProperties: row.changedProperties,
  snapshot: row.snapshot,
  actorType: row.actorType,
  actorId: row.actorId,
  approvedBy: row.approvedBy,
  runId: row.runId,
  toolCallId: row.toolCallId,
  taskId: row.taskId,
  rootEventId: row.rootEventId,
  depth: row.depth,
  ...(row.undoes.length === 0 ? {} : { undoes: row.undoes }),
  refusals: row.refusals,
  createdAt: row.createdAt.toISOString()
})

// Searches a range of the feed for events of one kind, and for the position of an instant.
//
// A range is bounded by positions, so the cost depends on its length and not on the size of the feed.

/** Events of one kind, optionally of one type or one entity. */
export interface SoughtEvents {
  readonly entityType: EntityType
  readonly change: ChangeType
  readonly type: string | null
  readonly entityId: string | null
}

/** A range of the feed: after one position, up to another. */
export interface Stretch {
  readonly after: number
  readonly upTo: number
}

export class FeedSearch extends Context.Service<
  FeedSearch,
  {
    /** The first matching events of a range, in order. */
    readonly find: (
      sought: SoughtEvents,
      stretch: Stretch,
      limit: number
    ) => Effect.Effect<ReadonlyArray<GraphEvent>, never, ProjectTransaction>
    /** The distinct ids of entities of one kind with events in a range. */
    readonly touched: (
      entityType: EntityType,
      stretch: Stretch
    ) => Effect.Effect<ReadonlyArray<string>, never, ProjectTransaction>
    /** The position in a range after which events are at or after an instant; the instant in PostgreSQL's text form, with microseconds. */
    readonly placeBefore: (
      instant: string,
      stretch: Stretch
    ) => Effect.Effect<number, never, ProjectTransaction>
  }
>()("@tropism/server/outbox/FeedSearch") {
  static readonly layer = Layer.effect(
    FeedSearch,
    Effect.gen(function* () {
      const sql = yield* SqlClient.SqlClient

      const find = Effect.fn("FeedSearch.find")(function* (
        { change, entityId, entityType, type }: SoughtEvents,
        { after, upTo }: Stretch,
        limit: number
      ) {
        const { projectId } = yield* ProjectTransaction
        const rows = yield* sql<EventRow>`
          select * from kb.graph_events where ${sql.and([
            sql`project_id = ${projectId} and position > ${after} and position <= ${upTo}`,
            sql`entity_type = ${entityType} and type = ${change}`,
            ...(type === null ? [] : [sql`object_type = ${type}`]),
            ...(entityId === null ? [] : [sql`entity_id = ${entityId}::uuid`])
          ])} order by position limit ${limit}`
        return rows.map(toEvent)
      }, orDie)

      const touched = Effect.fn("FeedSearch.touched")(function* (
        entityType: EntityType,
        { after, upTo }: Stretch
      ) {
        const { projectId } = yield* ProjectTransaction
        const rows = yield* sql<{ readonly entityId: string }>`
          select distinct entity_id from kb.graph_events
          where project_id = ${projectId} and position > ${after} and position <= ${upTo} and entity_type = ${entityType}`
        return rows.map(({ entityId }) => entityId)
      }, orDie)

      // Positions follow the instants except for concurrent commits, so a binary search needs as many queries as the number has bits.
      const placeBefore = Effect.fn("FeedSearch.placeBefore")(function* (
        instant: string,
        { after, upTo }: Stretch
      ) {
        const { projectId } = yield* ProjectTransaction
        const row = yield* Effect.flatMap(
          sql<{ readonly place: bigint }>`
            with recursive halved(low, high) as (
              select ${after}::bigint, ${upTo}::bigint
              union all
              select case when isBefore then middle else low end, case when isBefore then high else middle - 1 end
              from halved, lateral (select (low + high + 1) / 2 as middle) half, lateral (
                select coalesce((select created_at from kb.graph_events where project_id = ${projectId} and position = middle)
                  < ${instant}::timestamptz, true) as isBefore
              ) looked
              where low < high
            )
            select low as place from halved where low >= high`,
          onlyRow
        )
        return Number(row.place)
      }, orDie)

      return FeedSearch.of({ find, touched, placeBefore })
    })
  )
}
