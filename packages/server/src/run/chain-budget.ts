/**
 * What a chain spends on models, counted in its row.
 *
 * Flow: graph → outbox → dispatch → **run** → tool → task
 *
 * A step adds its tokens and its money in the transaction that keeps the step,
 * so nothing is spent twice and nothing is forgotten. Whether there is anything
 * left is asked before each model request: runs that are at work at the same
 * time overrun a budget by at most one request each.
 */
import { type ChainUse, findSpentBudget, nothingUsed, type ReachedCap } from "@tropism/domain/chain"
import type { Usage } from "@tropism/domain/run"
import { Effect } from "effect"
import { SqlClient } from "effect/sql"
import { orDie, ProjectTransaction } from "../database/database.ts"
import { Projects } from "../database/projects.ts"
import type { ClaimedRun } from "./claimed-run.ts"

export const makeChainBudget = Effect.gen(function* () {
  const sql = yield* SqlClient.SqlClient
  const projects = yield* Projects

  /** Adds what a model request used. A chain that a schedule or a person began has no row before its first. */
  const spend = Effect.fn("ChainBudget.spend")(function* (run: ClaimedRun, usage: Usage, costMicros: number) {
    const { projectId } = yield* ProjectTransaction
    yield* sql`
      insert into kb.budgets as budget (project_id, scope, scope_id, input_tokens, output_tokens, cost_micros)
      values (${projectId}, 'chain', ${run.rootEventId}, ${usage.inputTokens}, ${usage.outputTokens}, ${costMicros})
      on conflict (project_id, scope, scope_id) do update set
        input_tokens = budget.input_tokens + excluded.input_tokens,
        output_tokens = budget.output_tokens + excluded.output_tokens,
        cost_micros = budget.cost_micros + excluded.cost_micros`
  }, orDie)

  /** The budget of the run's chain that is spent, if one is. */
  const findSpent = Effect.fn("ChainBudget.findSpent")(function* (
    run: Pick<ClaimedRun, "rootEventId">
  ): Effect.fn.Return<ReachedCap | undefined, never, ProjectTransaction> {
    const { chainLimits } = yield* projects.settings
    if (chainLimits.maxTokens === null && chainLimits.maxCostUsd === null) return undefined
    const { projectId } = yield* ProjectTransaction
    const [row] = yield* orDie(sql<UseRow>`
      select runs, input_tokens, output_tokens, cost_micros from kb.budgets
      where project_id = ${projectId} and scope = 'chain' and scope_id = ${run.rootEventId}`)
    return findSpentBudget(row ? toUse(row) : nothingUsed, chainLimits)
  })

  return { spend, findSpent }
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
