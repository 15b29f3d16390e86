/**
 * Answers the graph's question what an agent may do now.
 *
 * Flow: graph → outbox → dispatch → run → tool → task, beside it **agent** → model
 *
 * Reads the agent's row in the caller's transaction and holds it, so that a right
 * that was taken away is taken away when that is answered: who takes it waits for
 * the writes that are under way. It fills a port; it decides nothing.
 */
import type { AgentId } from "@tropism/domain/ids"
import { Effect } from "effect"
import { SqlClient } from "effect/sql"
import type { Capabilities, ExecutionMode, HybridPolicy } from "@tropism/domain/capability"
import { orDie, ProjectTransaction } from "../database/database.ts"

export const agentAuthority = Effect.gen(function* () {
  const sql = yield* SqlClient.SqlClient
  return Effect.fn("agentAuthority")(function* (agentId: AgentId) {
    const { projectId } = yield* ProjectTransaction
    const [row] = yield* sql<{
      name: string
      executionMode: ExecutionMode
      hybridPolicy: HybridPolicy | null
      capabilities: Capabilities | null
      isActive: boolean
    }>`
      select name, execution_mode, hybrid_policy, capabilities, enabled and deleted_at is null as is_active
      from kb.agents where id = ${agentId} and project_id = ${projectId} for share`
    return row && { agentId, ...row }
  }, orDie)
})
