/**
 * Decides in one query whether a run may make another model request.
 *
 * Each request costs money and leads to more. The query checks that the attempt still holds the run, that the agent may still act, and that
 * its chain, the run, the runs above it and the agent's day have budget left. When the run's last action was a transaction, that
 * transaction already prefetched the answer. Nothing is locked: an attempt that loses its run just after the check fails when it writes the
 * answer.
 */
import {
  type Budget,
  findSpent,
  type Spent,
  type SpendingLimit,
  type AgentDay,
  type AgentModelUse
} from "@tropism/domain/budget"
import { findSpentBudget, microsPerDollar, type ReachedCap, type ChainUse } from "@tropism/domain/chain"
import type { ReducedContext } from "@tropism/domain/context"
import type { RunId, AgentId } from "@tropism/domain/ids"
import { defineSettings, type ProjectSettingsPatch } from "@tropism/domain/project-settings"
import type { LimitOverrides } from "@tropism/domain/run"
import { limitsOf } from "@tropism/domain/run-limits"
import { Effect, Context, Layer } from "effect"
import { SqlClient, type Statement } from "effect/sql"
import { Database, orDie, ProjectTransaction } from "../database/database.ts"
import { runLimits } from "../limits.ts"
import { RunHalted, RunNotInState } from "./fencing.ts"
import { isStopped } from "./kill-switches.ts"
import type { ClaimedRun } from "./run-types.ts"

/** A run's budget and its usage; sums are JSON numbers. */
interface BudgetLine extends Spent {
  readonly id: string
  readonly agentName: string
  readonly limits: LimitOverrides | null
  readonly budget: Budget | null
}

interface BudgetState extends UseRow {
  readonly runId: RunId
  readonly agentName: string
  /** A backtest only simulates the agent, so it ignores whether the agent is enabled. */
  readonly isEnabled: boolean
  readonly isDeleted: boolean
  readonly settings: ProjectSettingsPatch
  /** The budget of the run's backtest; null without a limit or outside a backtest. */
  readonly backtest: (Spent & { readonly maxCostMicros: number }) | null
  readonly perDay: SpendingLimit | null
  readonly day: Spent | null
  /** The limits of the run and the runs above it, topmost first; null when none has a limit. */
  readonly purses: ReadonlyArray<BudgetLine> | null
}

export const makeBudgetChecks = Effect.gen(function* () {
  const sql = yield* SqlClient.SqlClient
  const database = yield* Database

  /** The usage as a JSON object. */
  const sums = sql`jsonb_build_object('inputTokens', coalesce(sum(input_tokens), 0), 'outputTokens', coalesce(sum(output_tokens), 0),
    'costMicros', coalesce(sum(cost_micros), 0))`

  /** `mayHavePurse` are the runs whose own limits are read; all runs' limits when absent. */
  const outlookOn = (which: Statement.Fragment, mayHavePurse?: ReadonlyArray<RunId>) =>
    sql<BudgetState>`
      select run.id as run_id, agent.name as agent_name, agent.enabled or run.backtest_id is not null as is_enabled, agent.deleted_at is not null as is_deleted, project.settings,
        coalesce(budget.runs, 0) as runs, coalesce(budget.input_tokens, 0) as input_tokens,
        coalesce(budget.output_tokens, 0) as output_tokens, coalesce(budget.cost_micros, 0) as cost_micros,
        agent.budget -> 'perDay' as per_day,
        case when run.backtest_id is not null then (
          select jsonb_build_object('maxCostMicros', test.max_cost_micros, 'inputTokens', 0, 'outputTokens', 0, 'costMicros', coalesce(spent.cost_micros, 0))
          from kb.backtests test left join kb.budgets spent
            on spent.project_id = test.project_id and spent.scope = 'backtest' and spent.scope_id = test.id and spent.period = ''
          where test.id = run.backtest_id and test.max_cost_micros is not null
        ) end as backtest,
        case when jsonb_typeof(agent.budget -> 'perDay') = 'object' and run.backtest_id is null then (
          select ${sums} from kb.budgets
          where project_id = run.project_id and scope = 'agent' and scope_id = run.agent_id and ${rowsOfDay(sql, today(sql))}
        ) end as day,
        case when ${mayHavePurse === undefined ? sql`true` : sql`run.id = any(${mayHavePurse}::uuid[])`} then (
          select jsonb_agg(jsonb_build_object('id', payer.id, 'agentName', holder.name, 'limits', payer.limits,
            'budget', version.definition -> 'budget', 'inputTokens', coalesce(spent.input_tokens, 0),
            'outputTokens', coalesce(spent.output_tokens, 0), 'costMicros', coalesce(spent.cost_micros, 0)) order by payer.spawn_depth)
          from kb.agent_runs payer
          join kb.agents holder on holder.id = payer.agent_id
          join kb.agent_versions version on version.agent_id = payer.agent_id and version.version = payer.agent_version
          left join kb.budgets spent on spent.project_id = payer.project_id and spent.scope = 'run' and spent.scope_id = payer.id and spent.period = ''
          where payer.id = any(run.ancestors || run.id)
            and (payer.limits is not null or jsonb_typeof(version.definition -> 'budget' -> 'perRun') = 'object')
        ) end as purses
      from kb.agent_runs run
      join kb.agents agent on agent.id = run.agent_id
      join kb.projects project on project.id = run.project_id
      left join lateral (
        select * from kb.budgets where project_id = run.project_id and scope = 'chain' and scope_id = run.root_event_id limit 1
      ) budget on true
      where ${which}`

  const ask = ({ attemptToken, id }: ClaimedRun) =>
    outlookOn(
      sql`run.id = ${id} and run.attempt_token = ${attemptToken} and run.status = 'running' and not ${isStopped(sql)}`
    )

  const foresee = (run: ClaimedRun) =>
    orDie(Effect.map(ask(run), ([outlook]): PrefetchedBudget => ({ outlook })))

  /** Reads the budget state of runs that this transaction has locked. */
  const foreseeAll = (runs: ReadonlyArray<ClaimedRun>) =>
    outlookOn(
      sql`run.id = any(${runs.map(({ id }) => id)}::uuid[])`,
      runs.filter(mayHavePurse).map(({ id }) => id)
    )

  const mayAsk = Effect.fn("Runs.mayAsk")(function* (run: ClaimedRun, foreseen?: PrefetchedBudget) {
    const { outlook } = foreseen ?? { outlook: (yield* database.ask(run.projectId, ask(run)))[0] }
    if (!outlook) return yield* new RunNotInState({ runId: run.id })
    if (!outlook.isEnabled || outlook.isDeleted) {
      const fate = outlook.isDeleted ? "deleted" : "disabled"
      return yield* new RunHalted({ runId: run.id, detail: `The agent ${outlook.agentName} was ${fate}` })
    }
    return spentIn(run, outlook)
  })

  /** Returns the exhausted budget that blocks the run's next request, as this transaction sees it. */
  const findSpentOf = Effect.fn("Runs.findSpentOf")(function* (id: RunId) {
    const [outlook] = yield* outlookOn(sql`run.id = ${id}`)
    return outlook && spentIn({ id }, outlook)
  }, orDie)

  return { foresee, foreseeAll, mayAsk, findSpentOf }
})

/** The budget state to check before a model request; no outlook when the attempt has lost its run. */
export interface PrefetchedBudget {
  readonly outlook: BudgetState | undefined
}

/** Whether a run, or a run above it, may have a spending limit of its own. */
const mayHavePurse = ({ ancestors, hasBudget, limits }: ClaimedRun): boolean =>
  ancestors.length > 0 || hasBudget || limits !== null

/** Prefetched budget states, keyed by the folded state they belong to; any later action produces another state. */
export const prefetchedBudgets = new WeakMap<ReducedContext, PrefetchedBudget>()

const spentIn = (run: Pick<ClaimedRun, "id">, outlook: BudgetState): ReachedCap | undefined =>
  findSpentBudget(toUse(outlook), defineSettings(outlook.settings).chainLimits) ??
  spentBacktest(outlook) ??
  spentPurse(run, outlook.purses ?? []) ??
  spentDay(outlook)

const spentBacktest = ({ backtest }: BudgetState): ReachedCap | undefined =>
  backtest
    ? findSpent({ type: "backtest" }, backtest, { maxCostUsd: backtest.maxCostMicros / microsPerDollar })
    : undefined

/** Returns the exhausted budget of a run, topmost first, because that one stops the most runs. */
const spentPurse = (
  run: Pick<ClaimedRun, "id">,
  purses: ReadonlyArray<BudgetLine>
): ReachedCap | undefined => {
  for (const { agentName, budget, id, limits, ...use } of purses) {
    const limit = limitsOf({ maxSteps: null, defaultTimeoutMs: null, budget }, false, limits)
    const spender =
      id === run.id ? ({ type: "run" } as const) : { type: "runAbove" as const, runId: id, agentName }
    const cap = findSpent(spender, use, limit)
    if (cap) return cap
  }
  return undefined
}

/** The agent's daily limit is the current one, whatever version the run began with. */
const spentDay = ({ agentName, day, perDay }: BudgetState): ReachedCap | undefined =>
  day && perDay ? findSpent({ type: "agent", name: agentName }, day, perDay) : undefined

// SQL for the columns of budgets.

/** Today's period of a daily budget, in UTC on the database's clock, whatever the session's time zone. */
export const today = (sql: SqlClient.SqlClient) => sql`to_char(now() at time zone 'UTC', 'YYYY-MM-DD')`

/** Selects the rows of the agent's day `day`, a date. A day has several rows to reduce lock contention between runs. */
const rowsOfDay = (sql: SqlClient.SqlClient, day: Statement.Fragment) =>
  sql`period >= ${day} and period < ${day} || '~'`

/** The counters of a budget row. */
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

/** Builds a usage as JSON, from columns of `kb.budgets` or from sums of them. */
export const usageJson = (sql: SqlClient.SqlClient, from: (column: string) => string): Statement.Fragment => {
  const of = (column: string) => sql.literal(from(column))
  return sql`jsonb_strip_nulls(jsonb_build_object('inputTokens', ${of("input_tokens")}, 'outputTokens', ${of("output_tokens")},
    'cachedInputTokens', nullif(${of("cached_input_tokens")}, 0), 'cacheWriteTokens', nullif(${of("cache_write_tokens")}, 0),
    'reasoningTokens', nullif(${of("reasoning_tokens")}, 0)))`
}

// Reports an agent's model usage by day and by model.
//
// Days come from the budget rows, so reading them costs the same however many runs there were; models come from the request records.

export class AgentDays extends Context.Service<
  AgentDays,
  {
    /** Returns the last days on which the agent made model requests, today's first. */
    readonly last: (
      agentId: AgentId,
      days: number
    ) => Effect.Effect<ReadonlyArray<AgentDay>, never, ProjectTransaction>

    /** Returns the agent's usage of each model in the last days, the most tokens first. */
    readonly byModel: (
      agentId: AgentId,
      days: number
    ) => Effect.Effect<ReadonlyArray<AgentModelUse>, never, ProjectTransaction>
  }
>()("@tropism/server/run/AgentDays") {
  static readonly layer = Layer.effect(
    AgentDays,
    Effect.gen(function* () {
      const sql = yield* SqlClient.SqlClient

      const last = Effect.fn("AgentDays.last")(function* (agentId: AgentId, days: number) {
        const { projectId } = yield* ProjectTransaction
        const rows = yield* sql<DayRow>`
          select left(period, 10) as date, sum(runs)::int as runs, ${usageJson(sql, (column) => `sum(${column})`)} as usage,
            sum(cost_micros)::bigint as cost_micros
          from kb.budgets
          where project_id = ${projectId} and scope = 'agent' and scope_id = ${agentId}
            and period > to_char((now() at time zone 'UTC')::date - ${days}::int, 'YYYY-MM-DD') || '~'
          group by left(period, 10) order by left(period, 10) desc`
        return rows.map(({ costMicros, ...row }): AgentDay => ({
          ...row,
          costUsd: Number(costMicros) / microsPerDollar
        }))
      }, orDie)

      const byModel = Effect.fn("AgentDays.byModel")(function* (agentId: AgentId, days: number) {
        const { projectId } = yield* ProjectTransaction
        const rows = yield* sql<ModelRow>`
          select provider, model, count(*)::int as requests, ${usageJson(sql, (column) => `sum(${column})`)} as usage,
            sum(cost_micros)::bigint as cost_micros, sum(cached_cost_micros)::bigint as cached_cost_micros
          from kb.model_calls
          where project_id = ${projectId} and agent_id = ${agentId} and finish_reason is not null
            and started_at >= ((now() at time zone 'UTC')::date - ${days - 1}::int) at time zone 'UTC'
          group by provider, model
          order by sum(input_tokens) + sum(output_tokens) desc, provider, model
          limit ${runLimits.usageModels}`
        return rows.map(({ cachedCostMicros, costMicros, ...row }): AgentModelUse => {
          const { cachedInputTokens = 0, inputTokens } = row.usage
          return {
            ...row,
            cacheHitRate: inputTokens === 0 ? 0 : cachedInputTokens / inputTokens,
            costUsd: toDollars(costMicros),
            cachedInputCostUsd: toDollars(cachedCostMicros)
          }
        })
      }, orDie)

      return AgentDays.of({ last, byModel })
    })
  )
}

interface DayRow extends Omit<AgentDay, "costUsd"> {
  readonly costMicros: bigint
}

interface ModelRow extends Pick<AgentModelUse, "provider" | "model" | "requests" | "usage"> {
  readonly costMicros: bigint | null
  readonly cachedCostMicros: bigint | null
}

const toDollars = (micros: bigint | null): number | null =>
  micros === null ? null : Number(micros) / microsPerDollar
