/**
 * Answers the graph's question what an agent may do now.
 *
 * Flow: graph → outbox → dispatch → run → tool → task, beside it **agent** → model
 *
 * Reads the agent's row, and those of the agents that its run descends from, in
 * the caller's transaction and holds them, so that a right that was taken away is
 * taken away when that is answered: who takes it waits for the writes that are
 * under way. What the run's context was shown is read with it. It fills a port; it
 * decides nothing.
 */
import { narrow, type Powers } from "@tropism/domain/capability"
import type { AgentId, RunId } from "@tropism/domain/ids"
import { narrowTainted, type Taint } from "@tropism/domain/taint"
import { Effect } from "effect"
import { SqlClient } from "effect/sql"
import { orDie, ProjectTransaction } from "../database/database.ts"
import { inTurn } from "../database/turns.ts"

interface AgentPowers extends Powers {
  readonly id: AgentId
  readonly name: string
  /** What the version of a backtest says; null where the agent works for real. */
  readonly definition: Powers | null
  readonly isActive: boolean
  readonly taintedBy: ReadonlyArray<Taint> | null
}

export const agentAuthority = Effect.gen(function* () {
  const sql = yield* SqlClient.SqlClient
  return Effect.fn("agentAuthority")(function* (agentId: AgentId, runId: RunId | null, holdsTarget: boolean) {
    const { projectId } = yield* ProjectTransaction
    const concerned = sql`
      select ${agentId}::uuid union
      select ancestor.agent_id from kb.agent_runs run join kb.agent_runs ancestor on ancestor.id = any(run.ancestors)
      where run.id = ${runId}::uuid and run.parent_run_id is not null`
    const rows = yield* sql<AgentPowers>`
      select agent.id, agent.name, tested.definition, agent.execution_mode, agent.hybrid_policy, agent.capabilities,
        (agent.enabled or tested.definition is not null) and agent.deleted_at is null as is_active, (
          select context.tainted_by from kb.agent_runs run
          join kb.contexts context on context.project_id = run.project_id and context.name = run.context_name
          where run.id = ${runId}::uuid and run.project_id = ${projectId}
        ) as tainted_by
      from kb.agents agent
      left join lateral (
        select version.definition from kb.agent_runs run
        join kb.agent_versions version on version.agent_id = run.agent_id and version.version = run.agent_version
        where run.id = ${runId}::uuid and run.backtest_id is not null and run.agent_id = agent.id
      ) tested on true
      where agent.project_id = ${projectId} and agent.id = any(${holdsTarget ? sql`array(${concerned})` : inTurn(sql, "agent", concerned, "shared")})
      order by agent.id for share of agent`
    const own = rows.find(({ id }) => id === agentId)
    if (!own) return undefined
    const above = rows.filter(({ id }) => id !== agentId)
    const powers = above.reduce<Powers>(narrow, own.definition ?? own)
    const taintedBy = own.taintedBy ?? []
    const { capabilities, executionMode, hybridPolicy } = narrowTainted(powers, taintedBy)
    return {
      agentId,
      name: own.name,
      executionMode,
      hybridPolicy,
      capabilities,
      isBacktest: own.definition !== null,
      definedMode: powers.executionMode,
      taintedBy,
      actsFor: above.map(({ name }) => name),
      isActive: rows.every(({ isActive }) => isActive)
    }
  }, orDie)
})
