/**
 * For whom a task waits, and for how long.
 *
 * Flow: graph → outbox → dispatch → run → tool → **task**
 *
 * Time is the database's. Whose time is up can be decided no more, whether or
 * not the sweep that says so has come by: `deciding.ts` asks the same clock.
 */
import type { TaskId, UserId } from "@tropism/domain/ids"
import { AssignableType, isQuestion, isSuggestion, isTodo } from "@tropism/domain/task"
import { Effect } from "effect"
import { SqlClient } from "effect/sql"
import { orDie, ProjectTransaction } from "../database/database.ts"
import { reviewLimits } from "./task-limits.ts"
import { DecisionRefused, notOpen } from "./deciding.ts"
import { makeEarning } from "./earning.ts"
import { makeTaskReading } from "./reading.ts"

/** What somebody says of the wait of a task; absent stays, null is nobody and never. */
export interface Wait {
  readonly assignee?: UserId | null
  readonly expiresAt?: string | null
}

/** The verbs of `Tasks` by which the wait of a task changes, or ends. */
export const makeWaiting = Effect.gen(function* () {
  const sql = yield* SqlClient.SqlClient
  const { get } = yield* makeTaskReading
  const { expired: countExpired } = yield* makeEarning

  const wait = Effect.fn("Tasks.wait")(function* (id: TaskId, by: UserId, terms: Wait) {
    const { projectId } = yield* ProjectTransaction
    const { assignee, expiresAt } = terms
    const [changed] = yield* sql`
      update kb.tasks set assignee = case when ${assignee !== undefined} then ${assignee ?? null} else assignee end,
        expires_at = case when ${expiresAt !== undefined} then ${expiresAt ?? null}::timestamptz else expires_at end
      where id = ${id} and project_id = ${projectId} and owner = '' and status = 'pending' and type = any(${AssignableType.literals}::text[])
        and (expires_at is null or expires_at > now())
        and (${expiresAt ?? null}::timestamptz is null or (${expiresAt ?? null}::timestamptz > now() and type <> 'question')) returning id`
    const task = yield* get(id, by)
    if (!task || changed) return task
    if (isTodo(task) || !(isQuestion(task) || isSuggestion(task)))
      return yield* new DecisionRefused({
        reason: "notAssignable",
        detail: `Task ${task.number} is not for somebody else: only a suggestion or a question is assigned`
      })
    if (task.status !== "pending") return yield* notOpen(task)
    if (isQuestion(task))
      return yield* new DecisionRefused({
        reason: "expiresAt",
        detail: "A question waits as long as its run does, and no time can be set for it"
      })
    // What is open and was not changed is either over or was given a time that is.
    const [row] = yield* sql<{ isOver: boolean }>`
      select coalesce(expires_at <= now(), false) as is_over from kb.tasks where id = ${id}`
    return yield* row?.isOver === true
      ? notOpen(task)
      : new DecisionRefused({ reason: "expiresAt", detail: "This instant is over: name one that is to come" })
  }, orDie)

  const expire = Effect.gen(function* () {
    const { projectId } = yield* ProjectTransaction
    const expired = yield* sql<{ id: TaskId }>`
      update kb.tasks set status = 'expired', resolved_at = now(), resolution_note = 'Nobody decided it in time'
      where status = 'pending' and expires_at <= now() and id = any(array(
        select id from kb.tasks where project_id = ${projectId} and status = 'pending' and expires_at <= now()
        order by expires_at, id limit ${reviewLimits.expiryBatchTasks} for update skip locked
      )) returning id`
    if (expired.length > 0) yield* countExpired(expired.map(({ id }) => id))
    return expired.length
  }).pipe(Effect.withSpan("Tasks.expire"), orDie)

  return { wait, expire }
})
