/**
 * What a chain spends on models, counted in its row.
 *
 * Flow: graph → outbox → dispatch → **run** → tool → task
 *
 * A step adds its tokens and its money in the transaction that keeps the step,
 * so nothing is spent twice and nothing is forgotten. Whether there is anything
 * left is asked before each model request (`asking.ts`): runs that are at work at the same
 * time overrun a budget by at most one request each.
 */
import type { ChainUse } from "@tropism/domain/chain"
import type { Usage } from "@tropism/domain/run"
import { Effect } from "effect"
import { SqlClient } from "effect/sql"
import type { ClaimedRun } from "./claimed-run.ts"

export const makeChainBudget = Effect.gen(function* () {
  const sql = yield* SqlClient.SqlClient

  /** Part of an append: adds what a model request used. A chain that a schedule or a person began has no row before its first. */
  const spending = (run: ClaimedRun, usage: Usage, costMicros: number) =>
    sql`spent as (
      insert into kb.budgets as budget (project_id, scope, scope_id, input_tokens, output_tokens, cost_micros)
      select ${run.projectId}::uuid, 'chain', ${run.rootEventId}::uuid, ${usage.inputTokens}::bigint, ${usage.outputTokens}::bigint, ${costMicros}::bigint
      from appended
      on conflict (project_id, scope, scope_id, period) do update set
        input_tokens = budget.input_tokens + excluded.input_tokens,
        output_tokens = budget.output_tokens + excluded.output_tokens,
        cost_micros = budget.cost_micros + excluded.cost_micros)`

  return { spending }
})

/** The counting columns of a budget's row. */
export interface UseRow {
  readonly runs: number
  readonly inputTokens: bigint
  readonly outputTokens: bigint
  readonly costMicros: bigint
}

export const toUse = (row: UseRow): ChainUse => ({
  runs: row.runs,
  inputTokens: Number(row.inputTokens),
  outputTokens: Number(row.outputTokens),
  costMicros: Number(row.costMicros)
})
