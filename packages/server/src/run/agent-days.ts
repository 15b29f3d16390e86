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
import { cachedOf } from "@tropism/domain/run"
import { Context, Effect, Layer } from "effect"
import { SqlClient } from "effect/sql"
import { orDie, ProjectTransaction } from "../database/database.ts"
import { toUse, type UseRow } from "./spending.ts"

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
        const rows = yield* sql<UseRow & Pick<AgentDay, "date"> & { readonly cachedInputTokens: bigint }>`
          select left(period, 10) as date, sum(runs)::int as runs, sum(input_tokens)::bigint as input_tokens,
            sum(output_tokens)::bigint as output_tokens, sum(cached_input_tokens)::bigint as cached_input_tokens, sum(cost_micros)::bigint as cost_micros
          from kb.budgets
          where project_id = ${projectId} and scope = 'agent' and scope_id = ${agentId}
            and period > to_char((now() at time zone 'UTC')::date - ${days}::int, 'YYYY-MM-DD') || '~'
          group by left(period, 10) order by left(period, 10) desc`
        return rows.map((row): AgentDay => {
          const { costMicros, runs, ...total } = toUse(row)
          const usage = { ...total, ...cachedOf(Number(row.cachedInputTokens)) }
          return { date: row.date, runs, usage, costUsd: costMicros / microsPerDollar }
        })
      }, orDie)

      return AgentDays.of({ last })
    })
  )
}
