/**
 * Implements the graph's port that asks what an agent may do now.
 *
 * It reads and locks the rows of the agent, and of the agents above its run, in the caller's transaction. A permission that is revoked is
 * therefore gone once the revocation returns: that transaction waits for the writes in progress. The taint of the run's context is read
 * with it. It decides nothing.
 */
import { narrow, type Powers } from "@tropism/domain/capability"
import type { AgentId, RunId } from "@tropism/domain/ids"
import { narrowTainted, type Taint } from "@tropism/domain/taint"
import { Effect } from "effect"
import { SqlClient } from "effect/sql"
import { orDie, ProjectTransaction } from "../database/database.ts"
import { inTurn } from "../database/fair-row-locks.ts"

interface AgentPowers extends Powers {
  readonly id: AgentId
  readonly name: string
  /** The powers of a backtest's version; null for a real run. */
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

// Counts each agent's consecutive failures, and disables it when there are too many.
//
// The count is in the agent's row and changes in the transaction that ends a run, so no failure is lost. Disabling creates a new version by
// the system, because an agent's row always matches its newest version.

/** A run that failed. */
interface Failure {
  readonly id: RunId
  readonly agentId: AgentId
  readonly contextName: string
}

/** The author of the version in which an agent disables itself. */
const systemUser = "system"

export const makeFailureStreaks = Effect.gen(function* () {
  const sql = yield* SqlClient.SqlClient

  /** Disables an agent in a new version and removes its triggers. */
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

  /** Returns the failure text that everyone may read; for a private conversation only where to find it. */
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
