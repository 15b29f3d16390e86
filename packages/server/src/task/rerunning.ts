/**
 * Says of a suggestion which run looks at it again.
 *
 * Flow: graph → outbox → dispatch → run → tool → **task**
 *
 * One at a time: of two runs that are named at once the second is not, and
 * whoever queued it takes it back. A decided suggestion is looked at no more.
 */
import type { RunId, TaskId } from "@tropism/domain/ids"
import { Effect } from "effect"
import { SqlClient } from "effect/sql"
import { orDie, ProjectTransaction } from "../database/database.ts"

export const makeRerunning = Effect.gen(function* () {
  const sql = yield* SqlClient.SqlClient

  /**
   * Names the run that looks at a suggestion again; false when it does not wait, another looks already, or somebody holds it.
   *
   * **Details** The agent is held, and whoever decides the suggestion holds that and then wants the agent.
   */
  const rerunBy = Effect.fn("Tasks.rerunBy")(function* (id: TaskId, runId: RunId) {
    const { projectId } = yield* ProjectTransaction
    const named = yield* sql`
      update kb.tasks set rerun_id = ${runId} where id = any(array(
        select id from kb.tasks where id = ${id} and project_id = ${projectId} and status = 'pending'
          and (expires_at is null or expires_at > now())
          and not exists (select 1 from kb.agent_runs run where run.id = rerun_id and run.status in ('queued', 'running', 'paused'))
        for no key update skip locked))
      returning id`
    return named.length > 0
  }, orDie)

  /** Whether the time of a task that waits is up, said by the database's clock. */
  const isOver = Effect.fn("Tasks.isOver")(function* (id: TaskId) {
    const { projectId } = yield* ProjectTransaction
    const over = yield* sql`
      select 1 from kb.tasks where id = ${id} and project_id = ${projectId} and status = 'pending' and expires_at <= now()`
    return over.length > 0
  }, orDie)

  return { rerunBy, isOver }
})
