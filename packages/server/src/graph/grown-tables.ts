/**
 * Has PostgreSQL count the rows of tables that grow while a file is imported.
 *
 * Flow: **graph** → outbox → dispatch → run → tool → task
 *
 * Plans that a connection made while a table was empty read, for each line of a
 * file, all that the lines before it have put there. PostgreSQL's own round
 * makes new ones within a minute; a file may be in by then, or take hours.
 */
import { Effect } from "effect"
import type { SqlClient } from "effect/sql"
import { transferLimits } from "../limits.ts"

/** To be told, between transactions, how much of a file is done: counts early, and whenever that has doubled. */
export const countAsGrown = (
  sql: SqlClient.SqlClient,
  doneBefore: number
): ((done: number) => Effect.Effect<void>) => {
  let countAt = doneBefore + transferLimits.countAfterLines
  return (done) =>
    Effect.suspend(() => {
      if (done < countAt) return Effect.void
      countAt = 2 * done
      return Effect.catchCause(sql`select kb.count_grown_tables()`, (cause) =>
        Effect.logWarning("Grown tables could not be counted", cause)
      )
    })
}
