/**
 * Counts each agent's failures in a row, and disables it when there are too many.
 *
 * Flow: graph → outbox → dispatch → run → tool → task, beside it **agent** → model
 *
 * The count lies in the agent's row and changes in the transaction in which a
 * run ends, so two failures at once are two. What disables itself becomes a new
 * version, made by the system: an agent's row always says what its newest
 * version says.
 */
import type { AgentId } from "@tropism/domain/ids"
import { Effect } from "effect"
import { SqlClient } from "effect/sql"
import { orDie, ProjectTransaction } from "../database/database.ts"

/** Who makes the version with which an agent disables itself. */
const systemUser = "system"

export const makeFailureStreaks = Effect.gen(function* () {
  const sql = yield* SqlClient.SqlClient

  /** Disables an agent as a new version, and takes its triggers away. */
  const disable = Effect.fnUntraced(function* (id: AgentId, reason: string) {
    const { projectId } = yield* ProjectTransaction
    yield* sql`
      with disabled as (
        update kb.agents set enabled = false, enabled_at = null, disabled_reason = ${reason}, version = version + 1, updated_at = now()
        where id = ${id} and project_id = ${projectId} returning id, project_id, version
      )
      insert into kb.agent_versions (agent_id, version, project_id, definition, created_by)
      select disabled.id, disabled.version, disabled.project_id, jsonb_set(before.definition, '{enabled}', 'false'), ${systemUser}
      from disabled join kb.agent_versions before on before.agent_id = disabled.id and before.version = disabled.version - 1`
    yield* sql`delete from kb.agent_reactions where agent_id = ${id}`
    yield* sql`delete from kb.agent_schedules where agent_id = ${id}`
    yield* sql`delete from kb.agent_mcp_events where agent_id = ${id}`
    yield* Effect.logWarning("An agent is disabled", { agentId: id, reason })
  })

  /** Counts a failed run for each of the agents named; an agent that is named twice failed twice. */
  const countFailures = Effect.fn("countFailures")(function* (
    agentIds: ReadonlyArray<AgentId>,
    lastError: string
  ) {
    if (agentIds.length === 0) return
    const rows = yield* sql<{ id: AgentId; consecutiveFailures: number; isTooMany: boolean }>`
      update kb.agents agent set consecutive_failures = consecutive_failures + failed.count
      from (select id, count(*)::int as count from unnest(${agentIds}::uuid[]) as id group by id) failed
      where agent.id = failed.id
      returning agent.id, consecutive_failures,
        enabled and deleted_at is null and consecutive_failures >= disable_after_failures as is_too_many`
    for (const { consecutiveFailures, id, isTooMany } of rows) {
      if (!isTooMany) continue
      const times = consecutiveFailures === 1 ? "once" : `${consecutiveFailures} times in a row`
      yield* disable(id, `It failed ${times} and was disabled by itself; the last failure: ${lastError}`)
    }
  }, orDie)

  return { countFailures }
})
