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
import type { AgentId, RunId } from "@tropism/domain/ids"
import { Effect } from "effect"
import { SqlClient } from "effect/sql"
import { orDie, ProjectTransaction } from "../database/database.ts"

/** A run that failed. */
interface Failure {
  readonly id: RunId
  readonly agentId: AgentId
  readonly contextName: string
}

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

  /** What everybody may read of a failure: of somebody's own conversation nothing but where it is told. */
  const toldOf = Effect.fnUntraced(function* ({ contextName, id }: Failure, error: string) {
    const { projectId } = yield* ProjectTransaction
    const owned =
      yield* sql`select from kb.contexts where project_id = ${projectId} and name = ${contextName} and owner is not null`
    return owned.length === 0
      ? `the last failure: ${error}`
      : `the last failure is told with run ${id}, in somebody's own conversation`
  })

  /** Counts the failed runs of each agent; all of them failed for the same reason. */
  const countFailures = Effect.fn("countFailures")(function* (
    failures: ReadonlyArray<Failure>,
    error: string
  ) {
    if (failures.length === 0) return
    const agentIds = failures.map(({ agentId }) => agentId)
    const rows = yield* sql<{ id: AgentId; consecutiveFailures: number; isTooMany: boolean }>`
      update kb.agents agent set consecutive_failures = consecutive_failures + failed.count
      from (select id, count(*)::int as count from unnest(${agentIds}::uuid[]) as id group by id) failed
      where agent.id = failed.id
      returning agent.id, consecutive_failures,
        enabled and deleted_at is null and consecutive_failures >= disable_after_failures as is_too_many`
    for (const { consecutiveFailures, id, isTooMany } of rows) {
      const last = failures.findLast(({ agentId }) => agentId === id)
      if (!isTooMany || last === undefined) continue
      const times = consecutiveFailures === 1 ? "once" : `${consecutiveFailures} times in a row`
      yield* disable(id, `It failed ${times} and was disabled by itself; ${yield* toldOf(last, error)}`)
    }
  }, orDie)

  return { countFailures }
})
