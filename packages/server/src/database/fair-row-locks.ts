/**
 * Queues writers that need a row exclusively fairly with those that share it.
 *
 * PostgreSQL grants a shared row lock to every further sharer at once, so an exclusive writer waits for as long as there are any: minutes,
 * if the sharers wait for each other elsewhere. Advisory locks have a queue. A transaction takes its turn right before the row, so the two
 * count as one lock in the lock order. A transaction that already holds what others in the queue wait for may share the row out of turn;
 * this is rare.
 */
import type { SqlClient, Statement } from "effect/sql"
import { poolLimits } from "./limits.ts"

/** The kinds of rows with a queue: writes share the row, and a change of the row itself has it alone. */
export type Turned = "agent" | "promotion"

/**
 * Waits for the turn of each row, shared or exclusive; returns the rows' ids as an array.
 *
 * A statement that locks rows by `id = any(…)` of it waits for all turns before it locks the first row.
 */
export const inTurn = (
  sql: SqlClient.SqlClient,
  turned: Turned,
  ids: Statement.Fragment,
  how: "shared" | "alone"
): Statement.Fragment => {
  const key = sql`hashtextextended(${`tropism.${turned}.`} || wanted.id, 0)`
  // Sharers ahead are aborted after one lock timeout; a writer in the queue waits longer, so that it does not lose its place each time.
  const patience = (waitMs: number) =>
    sql`set_config('lock_timeout', case current_setting('lock_timeout') when '0' then '0' else ${String(waitMs)} end, true) is not null`
  return sql`array(
    select wanted.id from (select distinct id from (${ids}) of (id) order by id) wanted
    where ${
      how === "shared"
        ? sql`pg_advisory_xact_lock_shared(${key}) is not null`
        : // One after the other, which `and` does not promise.
          sql`case when ${patience(poolLimits.turnWaitMs)} then case when pg_advisory_xact_lock(${key}) is not null then ${patience(poolLimits.lockWaitMs)} end end`
    })`
}
