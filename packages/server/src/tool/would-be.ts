/**
 * Keeps what a run of a backtest would have suggested.
 *
 * Flow: graph → outbox → dispatch → run → **tool** → task
 *
 * It stands beside the backtest alone: no task, no number, no evidence that
 * anybody reads. The record of the call is in the same transaction, so it is kept
 * once however often the call is made.
 */
import type { Change } from "@tropism/domain/change"
import type { BacktestId, RunId, ToolCallId } from "@tropism/domain/ids"
import { Effect } from "effect"
import { SqlClient } from "effect/sql"
import { orDie, ProjectTransaction } from "../database/database.ts"
import { type ChangeRefused, refused } from "../graph/refused.ts"

export interface WouldBe {
  readonly backtestId: BacktestId
  readonly runId: RunId
  readonly toolCallId: ToolCallId
  readonly change: Change
  readonly confidence: number | null
  readonly reasoning: string | null
}

export const makeWouldBe = Effect.gen(function* () {
  const sql = yield* SqlClient.SqlClient

  const keepWouldBe = Effect.fn("WouldBe.keep")(function* (suggestion: WouldBe) {
    const { projectId } = yield* ProjectTransaction
    yield* sql`
      insert into kb.backtest_suggestions (tool_call_id, project_id, backtest_id, run_id, change, confidence, reasoning)
      values (${suggestion.toolCallId}, ${projectId}, ${suggestion.backtestId}, ${suggestion.runId},
        ${JSON.stringify(suggestion.change)}::text::jsonb, ${suggestion.confidence}, ${suggestion.reasoning})`
  }, orDie)

  return { keepWouldBe }
})

/** What a backtest's run may not do: it reaches others. */
export const inBacktest = (tool: string): ChangeRefused =>
  refused(
    "backtest",
    `${tool} reaches others, and this is a backtest: nothing that you do here may. Go on without it.`
  )
