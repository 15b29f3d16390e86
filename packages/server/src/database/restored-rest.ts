/**
 * Puts a project that was made of a dump to rest: nothing in it acts before a person says so.
 *
 * Flow: graph → outbox → dispatch → run → tool → task, all on **database**
 *
 * Whatever was under way goes on where the dump was taken, so here it has ended.
 * An agent is disabled as a new version, as one that disables itself.
 */
import { Effect } from "effect"
import { SqlClient } from "effect/sql"
import { orDie, ProjectTransaction } from "./database.ts"

/** Why an agent of a restored project is disabled, until somebody enables it. */
export const restReason = "The project was restored from a dump: enable the agent when it is to act here"
const ended = "The project was restored from a dump: this goes on, if anywhere, where the dump was taken"

export const makeRestoredRest = Effect.gen(function* () {
  const sql = yield* SqlClient.SqlClient

  /** Disables every agent and answers how many were enabled. */
  const disableAgents = Effect.gen(function* () {
    const { projectId } = yield* ProjectTransaction
    const rows = yield* sql`
      with disabled as (
        update kb.agents set enabled = false, enabled_at = null, disabled_reason = ${restReason}, version = version + 1, updated_at = now()
        where project_id = ${projectId} and enabled and deleted_at is null returning id, project_id, version
      )
      insert into kb.agent_versions (agent_id, version, project_id, definition, created_by)
      select disabled.id, disabled.version, disabled.project_id, jsonb_set(before.definition, '{enabled}', 'false'), 'system'
      from disabled join kb.agent_versions before on before.agent_id = disabled.id and before.version = disabled.version - 1
      returning 1`
    return rows.length
  })

  /** Ends runs, what waited for them, and what else was under way. */
  const endWork = Effect.gen(function* () {
    const { projectId } = yield* ProjectTransaction
    yield* sql`
      update kb.agent_runs set status = 'cancelled', completed_at = now(), pause_reason = null, deadline_at = null, error_message = ${ended}
      where project_id = ${projectId} and status in ('queued', 'running', 'paused')`
    yield* sql`
      update kb.agent_processing_log set status = case status when 'pending' then 'skipped' else 'abandoned' end,
        completed_at = now(), reason = ${ended}, due_at = null
      where project_id = ${projectId} and status in ('pending', 'processing')`
    yield* sql`
      update kb.tasks set status = 'expired', resolved_at = now()
      where project_id = ${projectId} and type = 'question' and status = 'pending'`
    yield* sql`
      update kb.tool_calls set status = 'abandoned', completed_at = now() where project_id = ${projectId} and status = 'started'`
    yield* sql`
      update kb.backtests set status = 'cancelled', completed_at = now(), detail = ${ended}
      where project_id = ${projectId} and status in ('queued', 'running')`
    yield* sql`update kb.imports set status = 'interrupted' where project_id = ${projectId} and status = 'running'`
    yield* sql`update kb.mcp_servers set enabled = false where project_id = ${projectId} and enabled`
  })

  return { rest: orDie(Effect.tap(disableAgents, () => endWork)) }
})
