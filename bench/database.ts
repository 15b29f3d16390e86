/**
 * The bench's own look at the server's database, through the same kind of pool as the server's.
 *
 * It reads rows to learn what came of a load, makes the rows of a past that would
 * take too long to live through, and measures the floor: what the same client and
 * the same database do when nothing is between them.
 */
import { poolLayer } from "@tropism/server/database/pool"
import { Effect, ManagedRuntime, type Redacted } from "effect"
import { SqlClient, type SqlError } from "effect/sql"

export interface Rows {
  readonly ask: <A>(
    statement: (sql: SqlClient.SqlClient) => Effect.Effect<A, SqlError.SqlError>
  ) => Promise<A>
  /** Runs statements one after another on one connection. */
  readonly alone: (statements: ReadonlyArray<string>) => Promise<void>
  readonly close: () => Promise<void>
}

/** Opens a pool on an address. */
export const openRows = (url: Redacted.Redacted<string>): Rows => {
  const runtime = ManagedRuntime.make(poolLayer({ url, startupParameters: {} }))
  return {
    ask: (statement) => runtime.runPromise(Effect.flatMap(SqlClient.SqlClient, statement)),
    alone: (statements) =>
      runtime.runPromise(
        Effect.flatMap(SqlClient.SqlClient, (sql) =>
          sql.withTransaction(Effect.forEach(statements, (text) => sql.unsafe(text), { discard: true }))
        )
      ),
    close: () => runtime.dispose()
  }
}

/** When each object that an agent reacted to was written on, and when its run began and ended. */
export interface Reaction {
  readonly objectId: string
  readonly startedMs: number
  readonly completedMs: number
}

const msOf = (column: string) => `extract(epoch from ${column})::float8 * 1000`

export const reactionsOf = (rows: Rows, agentId: string): Promise<ReadonlyArray<Reaction>> =>
  rows.ask((sql) =>
    sql.unsafe<Reaction>(
      `select trigger->'events'->0->>'objectId' as object_id, ${msOf("started_at")} as started_ms, ${msOf("completed_at")} as completed_ms
       from kb.agent_runs where agent_id = $1 and status = 'completed'`,
      [agentId]
    )
  )

/** How many runs of an agent have come to rest, and how many of them did not complete. */
export const countRuns = async (rows: Rows, agentId: string) => {
  const [row] = await rows.ask((sql) =>
    sql.unsafe<{ rested: number; broken: number }>(
      `select count(*) filter (where status not in ('queued', 'running'))::int as rested,
         count(*) filter (where status in ('failed', 'cancelled', 'paused'))::int as broken
       from kb.agent_runs where agent_id = $1`,
      [agentId]
    )
  )
  return row ?? { rested: 0, broken: 0 }
}

/** Transactions that the database has ended so far; PostgreSQL's backends tell within some seconds. */
export const countTransactions = async (rows: Rows): Promise<number> => {
  const [row] = await rows.ask((sql) =>
    sql.unsafe<{ count: number }>(
      `select (xact_commit + xact_rollback)::float8 as count from pg_stat_database where datname = current_database()`
    )
  )
  return row?.count ?? 0
}

/** Transactions that wrote, exactly. */
export const countWrites = async (rows: Rows): Promise<number> => {
  const [row] = await rows.ask((sql) =>
    sql.unsafe<{ count: number }>(`select pg_snapshot_xmax(pg_current_snapshot())::text::float8 as count`)
  )
  return row?.count ?? 0
}
