/**
 * What is spent on models, counted where a step is kept.
 *
 * Flow: graph → outbox → dispatch → **run** → tool → task
 *
 * A step adds its tokens and its money to its chain, to its agent's day, to its
 * run and to every run above it, in the statement that keeps the step: nothing
 * is spent twice and nothing is forgotten. Whether there is anything left is
 * asked before each model request (`asking.ts`): runs that are at work at the
 * same time overrun a budget by at most one request each.
 */
import type { ChainUse } from "@tropism/domain/chain"
import type { Usage } from "@tropism/domain/run"
import { Effect } from "effect"
import { SqlClient, type Statement } from "effect/sql"
import { runLimits } from "../limits.ts"
import type { ClaimedRun } from "./claimed-run.ts"
import { makeCountingRuns } from "./counting-runs.ts"
import { makeHolding } from "./holding.ts"

/** What a model request used. */
export interface StepUse {
  readonly usage: Usage
  readonly model: string
  readonly finishReason: string
  readonly costMicros: number
}

/** The day that it is for a budget, on the database's clock: UTC, whatever the session speaks. */
export const today = (sql: SqlClient.SqlClient) => sql`to_char(now() at time zone 'UTC', 'YYYY-MM-DD')`

/** The rows of an agent's day, of which `day` is a date: a day has several, so that its runs do not wait for one another. */
export const rowsOfDay = (sql: SqlClient.SqlClient, day: Statement.Fragment) =>
  sql`period >= ${day} and period < ${day} || '~'`

export const makeSpending = Effect.gen(function* () {
  const sql = yield* SqlClient.SqlClient
  const { held } = yield* makeHolding
  const { rested } = yield* makeCountingRuns

  /** Which of its agent's rows of a day a run adds to. */
  const dayRowOf = ({ id }: ClaimedRun): string =>
    `/${Number.parseInt(id.slice(-2), 16) % runLimits.agentDayRows}`

  /** Who pays beside a run and those above it: its chain and its agent's day, or the backtest that it belongs to. */
  const payersOf = (run: ClaimedRun) =>
    run.backtestId === null
      ? sql`select 'chain' as scope, ${run.rootEventId}::uuid as id, '' as period
        union all select 'agent', ${run.agentId}::uuid, ${today(sql)} || ${dayRowOf(run)}::text`
      : sql`select 'backtest' as scope, ${run.backtestId}::uuid as id, '' as period`

  /**
   * Part of an append: adds what a model request used.
   *
   * **Details** All rows are taken in one order, so runs that add to the same ones never wait for each other in a circle. A
   * run counts itself with its first step, in its agent's day and in every run above it; the runs of a chain are counted
   * where they get their place.
   */
  const spending = (
    run: ClaimedRun,
    usage: Usage,
    costMicros: number,
    isStep: boolean,
    behind: Statement.Fragment = sql.literal("")
  ) =>
    sql`spent as (
      insert into kb.budgets as budget (project_id, scope, scope_id, period, runs, input_tokens, output_tokens, cached_input_tokens, cache_write_tokens, reasoning_tokens, cost_micros)
      select ${run.projectId}::uuid, share.scope, share.id, share.period,
        case when share.scope <> 'chain' and asker.step_count = 0 and ${isStep}::boolean then 1 else 0 end,
        ${usage.inputTokens}::bigint, ${usage.outputTokens}::bigint, ${usage.cachedInputTokens ?? 0}::bigint,
        ${usage.cacheWriteTokens ?? 0}::bigint, ${usage.reasoningTokens ?? 0}::bigint, ${costMicros}::bigint
      from appended
      cross join (select step_count from kb.agent_runs where id = ${run.id}) asker
      ${behind}
      cross join (
        ${payersOf(run)}
        union all select 'run', id, '' from unnest(${[...run.ancestors, run.id]}::uuid[]) id
      ) share
      order by share.scope, share.id
      on conflict (project_id, scope, scope_id, period) do update set
        runs = budget.runs + excluded.runs,
        input_tokens = budget.input_tokens + excluded.input_tokens,
        output_tokens = budget.output_tokens + excluded.output_tokens,
        cached_input_tokens = budget.cached_input_tokens + excluded.cached_input_tokens,
        cache_write_tokens = budget.cache_write_tokens + excluded.cache_write_tokens,
        reasoning_tokens = budget.reasoning_tokens + excluded.reasoning_tokens,
        cost_micros = budget.cost_micros + excluded.cost_micros)`

  const used = (usage: Usage, costMicros: number) =>
    sql`cost_micros = cost_micros + ${costMicros}::bigint, usage = jsonb_strip_nulls(jsonb_build_object(
        'inputTokens', (usage->>'inputTokens')::bigint + ${usage.inputTokens}::bigint,
        'outputTokens', (usage->>'outputTokens')::bigint + ${usage.outputTokens}::bigint,
        'cachedInputTokens', nullif(coalesce((usage->>'cachedInputTokens')::bigint, 0) + ${usage.cachedInputTokens ?? 0}::bigint, 0),
        'cacheWriteTokens', nullif(coalesce((usage->>'cacheWriteTokens')::bigint, 0) + ${usage.cacheWriteTokens ?? 0}::bigint, 0),
        'reasoningTokens', nullif(coalesce((usage->>'reasoningTokens')::bigint, 0) + ${usage.reasoningTokens ?? 0}::bigint, 0)))`

  /** What a step adds to its run. */
  const stepped = ({ costMicros, finishReason, model, usage }: StepUse) =>
    sql`step_count = step_count + 1, attempts_before_step = attempt - 1, model = ${model}, finish_reason = ${finishReason}, partial_text = null, waits_since = null, wait_tries = 0,
      wait_message = null, ${used(usage, costMicros)}`

  /** Parts of an append: what one step, or one other request, adds to its run and to every budget that it spends. */
  const counting = (run: ClaimedRun, spent: StepUse) => [
    sql`counted as (update kb.agent_runs set ${stepped(spent)} from appended where ${held(run)})`,
    spending(run, spent.usage, spent.costMicros, true)
  ]

  /**
   * Parts of an append that is a run's last: its end, in the same change of its row as its last step, if that comes with it.
   *
   * **Details** `first` is the part that must be written before any budget, and `behind` what joins it.
   */
  const countingLast = (
    run: ClaimedRun,
    end: Statement.Fragment,
    spent: StepUse | undefined,
    { behind, first }: { readonly behind: Statement.Fragment; readonly first: Statement.Fragment }
  ) => [
    sql`ended as (
      update kb.agent_runs run set ${spent === undefined ? end : sql`${stepped(spent)}, ${end}`}
      from appended where ${held(run)} returning run.id, run.agent_id, ${rested})`,
    first,
    ...(spent === undefined ? [] : [spending(run, spent.usage, spent.costMicros, true, behind)])
  ]

  const countingAside = (run: ClaimedRun, usage: Usage, costMicros: number) => [
    sql`counted as (update kb.agent_runs set ${used(usage, costMicros)} from appended where ${held(run)})`,
    spending(run, usage, costMicros, false)
  ]

  return { counting, countingAside, countingLast }
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

/** A usage as JSON, from columns of `kb.budgets` or from sums of them. */
export const usageJson = (sql: SqlClient.SqlClient, from: (column: string) => string): Statement.Fragment => {
  const of = (column: string) => sql.literal(from(column))
  return sql`jsonb_strip_nulls(jsonb_build_object('inputTokens', ${of("input_tokens")}, 'outputTokens', ${of("output_tokens")},
    'cachedInputTokens', nullif(${of("cached_input_tokens")}, 0), 'cacheWriteTokens', nullif(${of("cache_write_tokens")}, 0),
    'reasoningTokens', nullif(${of("reasoning_tokens")}, 0)))`
}
