/**
 * Reads which suggestions the calls of a run led to.
 *
 * Flow: graph → outbox → dispatch → run → tool → **task**
 *
 * A later run may have said the same again and so have made the task its own: it is told of both.
 */
import type { RunId } from "@tropism/domain/ids"
import { type RunObjects, runObjectBounds } from "@tropism/domain/run-objects"
import { Effect } from "effect"
import { SqlClient } from "effect/sql"
import { ProjectTransaction } from "../database/database.ts"

export const makeSuggestedTasks = Effect.gen(function* () {
  const sql = yield* SqlClient.SqlClient

  /** The newest first, bounded. */
  return Effect.fnUntraced(function* (runId: RunId) {
    const { projectId } = yield* ProjectTransaction
    return yield* sql<RunObjects["suggested"][number]>`
      select task.id as task_id, task.number::int, task.title, task.status from kb.tasks task
      where task.project_id = ${projectId} and task.id = any(array(
        select (result ->> 'taskId')::uuid from kb.tool_calls
        where project_id = ${projectId} and run_id = ${runId} and decision = 'suggest' and result ? 'taskId'))
      order by task.id desc limit ${runObjectBounds.maxRows}`
  })
})
