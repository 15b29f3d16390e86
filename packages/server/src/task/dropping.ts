/**
 * Drops what a run waited for from people and does not want any more.
 *
 * Flow: graph → outbox → dispatch → run → tool → **task**
 *
 * A question that nobody can answer any more is expired, and the call that
 * asked it abandoned, in the transaction that ends the wait. Its tasks are
 * locked after the run and its log, as whoever answers locks them.
 */
import type { RunId } from "@tropism/domain/ids"
import { Effect } from "effect"
import { SqlClient } from "effect/sql"
import { orDie, ProjectTransaction } from "../database/database.ts"

export const makeDropping = Effect.gen(function* () {
  const sql = yield* SqlClient.SqlClient

  /** Expires the questions of runs that have ended, or rest for something else, and abandons their calls of client tools. */
  const dropQuestions = Effect.fnUntraced(function* (runIds: ReadonlyArray<RunId>) {
    const { projectId } = yield* ProjectTransaction
    yield* sql`
      with expired as (
        update kb.tasks set status = 'expired', resolved_at = now()
        where project_id = ${projectId} and run_id = any(${runIds}::uuid[]) and type = 'question' and status = 'pending'
        returning tool_call_id
      )
      update kb.tool_calls call set status = 'abandoned', completed_at = now() from expired
      where call.id = expired.tool_call_id and call.status = 'started'`
    yield* sql`
      update kb.tool_calls set status = 'abandoned', completed_at = now()
      where project_id = ${projectId} and run_id = any(${runIds}::uuid[]) and status = 'started' and answer_due_at is not null`
  })

  /** Expires the question that one call asked, if it asked one. */
  const dropQuestion = Effect.fnUntraced(function* (runId: RunId, callId: string) {
    yield* sql`
      update kb.tasks task set status = 'expired', resolved_at = now() from kb.tool_calls call
      where call.run_id = ${runId} and call.call_id = ${callId} and task.run_id = ${runId} and task.tool_call_id = call.id
        and task.type = 'question' and task.status = 'pending'`
  }, orDie)

  return { dropQuestions, dropQuestion }
})
