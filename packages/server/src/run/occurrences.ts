/**
 * What foreign servers told, as it is read back.
 *
 * Flow: graph → outbox → dispatch → **run** → tool → task
 *
 * An occurrence never changes. It is written by the poller (`dispatch/telling.ts`)
 * with the log entries of whoever it concerns, and removed with the last of them.
 */
import type { GraphEventId } from "@tropism/domain/ids"
import type { Occurrence } from "@tropism/domain/mcp-event"
import { Effect } from "effect"
import { SqlClient } from "effect/sql"
import { orDie, ProjectTransaction } from "../database/database.ts"

/** An occurrence with what narrows its source. */
export interface ToldOccurrence extends Occurrence {
  readonly arguments: unknown
}

/** How a trigger names an occurrence `told` of a `source`. */
export const occurrenceJson = (sql: SqlClient.SqlClient) => sql`
  jsonb_build_object('id', told.id, 'server', source.server_name, 'name', source.name, 'eventId', told.event_id,
    'timestamp', to_char(told.happened_at at time zone 'utc', 'YYYY-MM-DD"T"HH24:MI:SS.MS"Z"'))`

interface OccurrenceRow extends Omit<ToldOccurrence, "createdAt" | "timestamp"> {
  readonly happenedAt: Date
  readonly createdAt: Date
}

/** The reads of occurrences. */
export const makeOccurrences = Effect.gen(function* () {
  const sql = yield* SqlClient.SqlClient

  /** Those of these ids that are kept, by id. */
  const getAll = Effect.fnUntraced(function* (ids: ReadonlyArray<GraphEventId>) {
    if (ids.length === 0) return new Map<GraphEventId, ToldOccurrence>()
    const { projectId } = yield* ProjectTransaction
    const rows = yield* sql<OccurrenceRow>`
      select told.id, source.server_name as server, source.name, source.arguments, told.event_id, told.happened_at, told.payload,
        told.payload_omitted, told.created_at
      from kb.mcp_occurrences told join kb.mcp_event_sources source on source.id = told.source_id
      where told.id = any(${ids}::uuid[]) and told.project_id = ${projectId}`
    return new Map(rows.map((row) => [row.id, toOccurrence(row)]))
  }, orDie)

  return { getAll }
})

const toOccurrence = ({ createdAt, happenedAt, ...row }: OccurrenceRow): ToldOccurrence => ({
  ...row,
  timestamp: happenedAt.toISOString(),
  createdAt: createdAt.toISOString()
})
