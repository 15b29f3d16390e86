/**
 * How the agents of a project fare: each with its latest runs, its next fire and what it cost.
 *
 * Flow: graph → outbox → **dispatch** → run → tool → task
 *
 * One statement for a page of agents, each part found through an index and no
 * more of it read than is told, so the cost follows the page.
 */
import { type AgentHealth, agentHealthRuns } from "@tropism/api/agents-api"
import { acceptanceRate, type Reviews, reviewsIn } from "@tropism/domain/autonomy"
import { microsPerDollar } from "@tropism/domain/chain"
import type { AgentId } from "@tropism/domain/ids"
import type { ModelConfig } from "@tropism/domain/model-config"
import { Context, Effect, Layer } from "effect"
import { SqlClient } from "effect/sql"
import { lastId, orDie, ProjectTransaction } from "../database/database.ts"
import { Models } from "../model/models.ts"

export class AgentHealths extends Context.Service<
  AgentHealths,
  {
    /** The agents, or one of them, the newest first, before an id. */
    readonly list: (
      before: string | undefined,
      limit: number,
      agentId?: AgentId
    ) => Effect.Effect<ReadonlyArray<AgentHealth>, never, ProjectTransaction>
  }
>()("@tropism/server/dispatch/AgentHealths") {
  static readonly layer = Layer.effect(
    AgentHealths,
    Effect.gen(function* () {
      const sql = yield* SqlClient.SqlClient
      const models = yield* Models

      /** A recorded run is looked for when it is asked: nobody knows before whether it is there. */
      const missingOf = ({ agentName, model }: HealthRow) =>
        model?.provider === "replay"
          ? Effect.succeed(null)
          : Effect.match(models.resolve({ agentName, model }), {
              onFailure: ({ message }) => message,
              onSuccess: () => null
            })

      const list = Effect.fn("AgentHealths.list")(function* (
        before: string | undefined,
        limit: number,
        agentId?: AgentId
      ) {
        const { projectId } = yield* ProjectTransaction
        const rows = yield* sql<HealthRow>`
          select agent.id, agent.name as agent_name, agent.enabled, agent.disabled_reason, agent.trigger_type,
            agent.model, schedule.next_fire_at, ran.latest, spent.micros, reviews.*
          from (
            select * from kb.agents where project_id = ${projectId} and deleted_at is null and id < ${before ?? lastId}::uuid
              and (${agentId ?? null}::uuid is null or id = ${agentId ?? null}::uuid)
            order by id desc limit ${limit}
          ) agent
          left join kb.agent_schedules schedule on schedule.agent_id = agent.id
          cross join lateral (
            select coalesce(jsonb_agg(jsonb_build_object('id', run.id, 'status', run.status, 'createdAt', run.created_at) order by run.id desc), '[]') as latest
            from (
              select id, status, created_at from kb.agent_runs where agent_id = agent.id and backtest_id is null
              order by id desc limit ${agentHealthRuns}
            ) run
          ) ran
          cross join lateral (
            select coalesce(sum(cost_micros), 0)::bigint as micros from kb.budgets
            where project_id = ${projectId} and scope = 'agent' and scope_id = agent.id
              and period > to_char((now() at time zone 'UTC')::date - ${costDays}::int, 'YYYY-MM-DD') || '~'
          ) spent
          cross join lateral (
            select coalesce(sum(accepted), 0)::integer as accepted, coalesce(sum(edited), 0)::integer as edited,
              coalesce(sum(rejected), 0)::integer as rejected
            from kb.review_records where agent_id = agent.id and agent_version = agent.version
          ) reviews
          order by agent.id desc`
        return yield* Effect.forEach(rows, (row) =>
          Effect.map(missingOf(row), (missing) => toHealth(row, missing))
        )
      }, orDie)
      return AgentHealths.of({ list })
    })
  )
}

const costDays = 7

interface HealthRow
  extends Omit<AgentHealth, "nextFireAt" | "weekCostUsd" | "modelMissing" | "acceptance">, Reviews {
  readonly model: ModelConfig | null
  readonly nextFireAt: Date | null
  readonly micros: bigint
}

const toHealth = (row: HealthRow, modelMissing: string | null): AgentHealth => ({
  id: row.id,
  agentName: row.agentName,
  enabled: row.enabled,
  disabledReason: row.disabledReason,
  triggerType: row.triggerType,
  modelMissing,
  nextFireAt: row.nextFireAt?.toISOString() ?? null,
  latest: row.latest.map((run) => ({ ...run, createdAt: new Date(run.createdAt).toISOString() })),
  weekCostUsd: Number(row.micros) / microsPerDollar,
  acceptance: { decided: reviewsIn(row), rate: acceptanceRate(row) }
})
