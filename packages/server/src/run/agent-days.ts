/**
 * What an agent has used on models, day by day and by model.
 *
 * Flow: graph → outbox → dispatch → **run** → tool → task
 *
 * Days are read from the rows in which spending is counted, so they cost the same however
 * many runs there were; models from the records of their requests.
 */
import type { AgentDay, AgentModelUse } from "@tropism/domain/budget"
import { microsPerDollar } from "@tropism/domain/chain"
import type { AgentId } from "@tropism/domain/ids"
import { Context, Effect, Layer } from "effect"
import { SqlClient } from "effect/sql"
import { orDie, ProjectTransaction } from "../database/database.ts"
import { runLimits } from "../limits.ts"
import { usageJson } from "./spending.ts"

export class AgentDays extends Context.Service<
  AgentDays,
  {
    /** The days of the last so many on which an agent asked a model, today's first. */
    readonly last: (
      agentId: AgentId,
      days: number
    ) => Effect.Effect<ReadonlyArray<AgentDay>, never, ProjectTransaction>

    /** What an agent has used of each model in the last so many days, the most tokens first. */
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
