/**
 * How many rows PostgreSQL looks at for what the server does, under its own role and row-level security.
 */
import type { ProjectId } from "@tropism/domain/ids"
import { Effect } from "effect"
import { SqlClient } from "effect/sql"
import { Database, type ProjectTransaction } from "../src/database/database.ts"

/** How often each verb is used: often enough for a plan that is made once for all values. */
export const times = 7

/** The most rows that a verb has looked at in a project, in a transaction each time. */
export const rowsReadIn =
  (project: ProjectId) =>
  <A, E, R>(use: (time: number) => Effect.Effect<A, E, R | ProjectTransaction>) =>
    Effect.gen(function* () {
      const database = yield* Database
      const sql = yield* SqlClient.SqlClient
      // What the connection has not told of earlier transactions is counted too.
      const counted = Effect.map(
        sql<{ readonly rows: number }>`
          select coalesce(sum(seq_tup_read + coalesce(idx_tup_fetch, 0)), 0)::int as rows from pg_stat_xact_user_tables where schemaname = 'kb'`,
        ([row]) => row?.rows ?? 0
      )
      let most = 0
      for (let time = 1; time <= times; time++) {
        const looked = Effect.gen(function* () {
          const before = yield* counted
          yield* use(time)
          return (yield* counted) - before
        })
        most = Math.max(most, yield* database.inProject(project, looked))
      }
      return most
    })
