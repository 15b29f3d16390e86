/**
 * Looks for events of one kind in a stretch of the feed, and for the place of an instant in it.
 *
 * Flow: graph → **outbox** → dispatch → run → tool → task
 *
 * A stretch is bounded by places, so what a look costs follows how long the
 * stretch is and not what the feed holds.
 */
import type { ChangeType, EntityType, GraphEvent } from "@tropism/domain/graph"
import { Context, Effect, Layer } from "effect"
import { SqlClient } from "effect/sql"
import { onlyRow, orDie, ProjectTransaction } from "../database/database.ts"
import { type EventRow, toEvent } from "./outbox.ts"

/** Events of one kind, of one type of thing or of one thing where these are said. */
export interface SoughtEvents {
  readonly entityType: EntityType
  readonly change: ChangeType
  readonly type: string | null
  readonly entityId: string | null
}

/** A part of the feed: behind a place, and up to another. */
export interface Stretch {
  readonly after: number
  readonly upTo: number
}

export class FeedSearch extends Context.Service<
  FeedSearch,
  {
    /** The first events of a kind in a stretch, in order. */
    readonly find: (
      sought: SoughtEvents,
      stretch: Stretch,
      limit: number
    ) => Effect.Effect<ReadonlyArray<GraphEvent>, never, ProjectTransaction>
    /** The ids of the things of one kind that events of a stretch are about, each once. */
    readonly touched: (
      entityType: EntityType,
      stretch: Stretch
    ) => Effect.Effect<ReadonlyArray<string>, never, ProjectTransaction>
    /** The place in a stretch behind which events are of an instant or later; the instant as PostgreSQL reads it, to the microsecond. */
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

      // Places follow the instants but for those that committed at once: halving finds one in as many looks as its number has bits.
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
