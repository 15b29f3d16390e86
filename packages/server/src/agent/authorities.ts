/**
 * Answers the graph's question what an agent may do now.
 *
 * Flow: graph → outbox → dispatch → run → tool → task, beside it **agent** → model
 *
 * Reads the agent's row, and those of the agents that its run descends from, in
 * the caller's transaction and holds them, so that a right that was taken away is
 * taken away when that is answered: who takes it waits for the writes that are
 * under way. It fills a port; it decides nothing.
 */
import { narrow, type Powers } from "@tropism/domain/capability"
import type { AgentId, RunId } from "@tropism/domain/ids"
import { Effect } from "effect"
import { SqlClient } from "effect/sql"
import { orDie, ProjectTransaction } from "../database/database.ts"

interface AgentPowers extends Powers {
  readonly id: AgentId
  readonly name: string
  readonly isActive: boolean
}

export const agentAuthority = Effect.gen(function* () {
  const sql = yield* SqlClient.SqlClient
  return Effect.fn("agentAuthority")(function* (agentId: AgentId, runId: RunId | null) {
    const { projectId } = yield* ProjectTransaction
    const rows = yield* sql<AgentPowers>`
      select id, name, execution_mode, hybrid_policy, capabilities, enabled and deleted_at is null as is_active
      from kb.agents where project_id = ${projectId} and id = any(array(
        select ${agentId}::uuid union
        select ancestor.agent_id from kb.agent_runs run join kb.agent_runs ancestor on ancestor.id = any(run.ancestors)
        where run.id = ${runId}::uuid and run.parent_run_id is not null
      )) order by id for share`
    const own = rows.find(({ id }) => id === agentId)
    if (!own) return undefined
    const above = rows.filter(({ id }) => id !== agentId)
    const { capabilities, executionMode, hybridPolicy } = above.reduce<Powers>(narrow, own)
    return {
      agentId,
      name: own.name,
      executionMode,
      hybridPolicy,
      capabilities,
      actsFor: above.map(({ name }) => name),
      isActive: rows.every(({ isActive }) => isActive)
    }
  }, orDie)
})
