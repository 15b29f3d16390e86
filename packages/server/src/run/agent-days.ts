/**
 * What an agent has used on models, day by day.
 *
 * Flow: graph → outbox → dispatch → **run** → tool → task
 *
 * Read from the rows in which spending is counted, so it costs the same however
 * many runs there were.
 */
import type { AgentDay } from "@tropism/domain/budget"
import { microsPerDollar } from "@tropism/domain/chain"
import type { AgentId } from "@tropism/domain/ids"
import { Context, Effect, Layer } from "effect"
import { SqlClient } from "effect/sql"
import { orDie, ProjectTransaction } from "../database/database.ts"
import { usageJson } from "./spending.ts"

export class AgentDays extends Context.Service<
  AgentDays,
  {
    /** The days of the last so many on which an agent asked a model, today's first. */
    readonly last: (
      agentId: AgentId,
      days: number
    ) => Effect.Effect<ReadonlyArray<AgentDay>, never, ProjectTransaction>
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

      return AgentDays.of({ last })
    })
  )
}

interface DayRow extends Omit<AgentDay, "costUsd"> {
  readonly costMicros: bigint
}
