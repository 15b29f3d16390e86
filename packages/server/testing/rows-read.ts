/**
 * How many rows PostgreSQL reads and writes for what the server does, under its own role and row-level security.
 */
import type { ProjectId } from "@tropism/domain/ids"
import { Clock, Effect } from "effect"
import { SqlClient } from "effect/sql"
import { Database, type ProjectTransaction } from "../src/database/database.ts"
import { ask } from "./owner-rows.ts"
import { eventually, type Story } from "./platform.ts"

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

/** How many rows of tables were looked at so far, and in how many looks. */
const reads = (story: Story, tables: ReadonlyArray<string>) =>
  Effect.map(
    ask(
      story.access,
      `select sum(seq_tup_read + coalesce(idx_tup_fetch, 0))::int, sum(seq_scan + coalesce(idx_scan, 0))::int
       from pg_stat_user_tables where schemaname = 'kb' and relname = any($1::text[])`,
      [tables]
    ),
    ([row]) => ({ rows: Number(row?.[0]), looks: Number(row?.[1]) })
  )

/** The same, once all that was read is counted: each connection tells what it read a second later. */
export const countedReads = (story: Story, tables: ReadonlyArray<string>) =>
  Effect.gen(function* () {
    let [last, looks] = [-1, 0]
    return yield* eventually(reads(story, tables), ({ rows }) => {
      looks = rows - last < 100 ? looks + 1 : 0
      last = rows
      return looks > 80
    })
  })

/** What a write and a reaction write to; what a server writes by itself, as of its presence, is left out. */
const written = [
  "graph_objects",
  "graph_object_versions",
  "graph_events",
  "agent_processing_log",
  "agent_runs",
  "contexts",
  "context_events",
  "passages",
  "budgets",
  "model_calls",
  "tool_calls",
  "denials"
]

/** Rows written so far, by table, and the transactions whose rows are there: all but claims, which the end of a run overwrites. */
const writes = (story: Story) =>
  Effect.map(
    ask(
      story.access,
      `select relname, (n_tup_ins + n_tup_upd + n_tup_del)::int from pg_stat_user_tables where schemaname = 'kb' and relname = any($1::text[])
       union all select 'transactions', count(distinct wrote)::int from (
         select xmin::text from kb.graph_object_versions where project_id = $2
         union all select xmin::text from kb.graph_events where project_id = $2
         union all select xmin::text from kb.context_events where project_id = $2
         union all select xmin::text from kb.agent_runs where project_id = $2
         union all select xmin::text from kb.tool_calls where project_id = $2) row(wrote)`,
      [written, story.projectId]
    ),
    (rows) => new Map(rows.map(([table, count]) => [String(table), Number(count)]))
  )

/** A connection that rests tells what it has written after ten seconds. */
const toldAfterMs = 11_000

/** The same, once all that was written is counted. */
export const countedWrites = (story: Story) =>
  Effect.gen(function* () {
    let last = ""
    let sinceMs = 0
    return yield* eventually(Effect.all([writes(story), Clock.currentTimeMillis]), ([counts, nowMs]) => {
      const rows = written.map((table) => counts.get(table))
      const seen = JSON.stringify(rows)
      if (seen !== last) sinceMs = nowMs
      last = seen
      return nowMs - sinceMs > toldAfterMs
    })
  }).pipe(Effect.map(([counts]) => counts))
