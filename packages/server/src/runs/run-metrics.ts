/** Counts stopped runs in the metrics, after the commit. */
import type { RunStatus } from "@tropism/domain/run"
import { Effect } from "effect"
import { SqlClient } from "effect/sql"
import { countRun } from "../telemetry/metrics.ts"

/** The columns that the statement which ends a run returns. */
export interface RestedRun {
  readonly triggerType: string
  /** From the first claim; null for a run that was never claimed. */
  readonly ranMs: number | null
}

export const makeRunMetrics = Effect.gen(function* () {
  const sql = yield* SqlClient.SqlClient

  /** The columns for `RestedRun`, after `returning id`. */
  const rested = sql`trigger_type, (extract(epoch from now() - started_at) * 1000)::float8 as ran_ms`

  const countRested = (status: RunStatus) => (rows: ReadonlyArray<RestedRun>) =>
    Effect.forEach(rows, ({ ranMs, triggerType }) => sql.afterCommit(countRun(status, triggerType, ranMs)), {
      discard: true
    })

  return { rested, countRested }
})
