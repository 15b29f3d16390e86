/**
 * Lets whoever would change a row come to it in turn with those who share it.
 *
 * PostgreSQL gives a row that is shared to every further sharer at once, and
 * whoever would have it alone waits for as long as there are any: for minutes,
 * where writes that share a row wait for each other in another place. An advisory
 * lock has a queue. Who takes its turn takes the row right behind it, so the two
 * are one lock in the order of locks. Beside it may share the row, out of turn and
 * seldom, who holds already what those in the queue wait for.
 */
import type { SqlClient, Statement } from "effect/sql"
import { poolLimits } from "./limits.ts"

/** What is shared by the writes that it lets be made, and held alone by who changes it. */
export type Turned = "agent" | "promotion"

/**
 * The ids of rows, as an array, once it is this transaction's turn to share each of them or to have it alone.
 *
 * **Details** A statement that locks rows by `id = any(…)` of it waits for its turns before it locks the first.
 */
export const inTurn = (
  sql: SqlClient.SqlClient,
  turned: Turned,
  ids: Statement.Fragment,
  how: "shared" | "alone"
): Statement.Fragment => {
  const key = sql`hashtextextended(${`tropism.${turned}.`} || wanted.id, 0)`
  // What sharers in front wait for elsewhere is broken off after a try; who is behind them waits for longer, or loses its place each time.
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
