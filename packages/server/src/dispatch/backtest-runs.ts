/**
 * The runs of a backtest, and its end.
 *
 * Flow: graph → outbox → **dispatch** → run → tool → task
 */
import type { BacktestStatus } from "@tropism/domain/backtest"
import type { BacktestId, RunId } from "@tropism/domain/ids"
import { isResumable, PauseReason } from "@tropism/domain/run"
import { Effect } from "effect"
import { SqlClient } from "effect/sql"
import { onlyRow, ProjectTransaction } from "../database/database.ts"
import { Endings } from "../run/endings.ts"

/** What lets a run rest for good: nobody resumes one of a backtest. */
const final = PauseReason.literals.filter(isResumable)

export const makeBacktestRuns = Effect.gen(function* () {
  const sql = yield* SqlClient.SqlClient
  const endings = yield* Endings

  /** The condition, on a row of kb.agent_runs called `run`, that it has not come to its rest. */
  const isLive = sql`(run.status in ('queued', 'running') or (run.status = 'paused' and not ${sql.in("run.pause_reason", final)}))`

  const countLive = Effect.fnUntraced(function* (id: BacktestId) {
    const { live } = yield* Effect.flatMap(
      sql<{ live: number }>`
        select count(*)::int as live from kb.agent_runs run where run.backtest_id = ${id} and ${isLive}`,
      onlyRow
    )
    return live
  })

  /** What its model requests have cost. */
  const spentMicros = Effect.fnUntraced(function* (id: BacktestId) {
    const { projectId } = yield* ProjectTransaction
    const [spent] = yield* sql<{ costMicros: bigint }>`
      select cost_micros from kb.budgets where project_id = ${projectId} and scope = 'backtest' and scope_id = ${id} and period = ''`
    return Number(spent?.costMicros ?? 0)
  })

  /** Ends a backtest, once; false when it had ended. */
  const end = Effect.fnUntraced(function* (
    id: BacktestId,
    status: Extract<BacktestStatus, "completed" | "cancelled" | "failed">,
    detail: string | null
  ) {
    const ended = yield* sql`
      update kb.backtests set status = ${status}, detail = ${detail}, completed_at = now()
      where id = ${id} and status in ('queued', 'running') returning id`
    return ended.length > 0
  })

  /** Cancels the runs that wait or are at work. */
  const cancelLive = Effect.fnUntraced(function* (id: BacktestId, because: string) {
    const live = yield* sql<{ id: RunId; contextName: string }>`
      select run.id, run.context_name from kb.agent_runs run where run.backtest_id = ${id} and ${isLive} order by run.id`
    for (const run of live)
      yield* Effect.catchTag(endings.cancel(run, { because }), "RunNotInState", () => Effect.void)
  })

  return { cancelLive, countLive, end, isLive, spentMicros }
})
