/**
 * How many runs stand as tasks, read at once: for lists, and for whoever watches them.
 *
 * Flow: **mcp** → graph → outbox → dispatch → run → tool → task
 *
 * However many tasks there are, a glance is three statements. It says what waits
 * by name only; the forms, and what came of a run, are read of one task at a time.
 */
import type { RunId, TaskId, UserId } from "@tropism/domain/ids"
import { isTerminal, type Run } from "@tropism/domain/run"
import { Effect } from "effect"
import { SqlClient } from "effect/sql"
import { orDie, ProjectTransaction } from "../database/database.ts"
import { mayRead } from "../http/owned.ts"
import { keysOf, type ListedTask, listedTaskOf } from "./run-task.ts"
import { taskBounds } from "./task-bounds.ts"
import { type TaskCaller, termsOf } from "./task-caller.ts"

/** How one run stands as a task, and the names of what it asks. */
export interface Glance {
  readonly task: ListedTask
  readonly hasFailed: boolean
  readonly keys: ReadonlyArray<string>
}

interface WaitingRow {
  readonly runId: RunId
  readonly id: TaskId
  readonly type: string
  readonly digest: string
}

/** Glances at runs that a person may read. */
export const makeGlancing = Effect.gen(function* () {
  const sql = yield* SqlClient.SqlClient

  /** What waits for a person, the first of each run. */
  const waiting = Effect.fnUntraced(function* (runs: ReadonlyArray<RunId>) {
    if (runs.length === 0) return []
    const { projectId } = yield* ProjectTransaction
    return yield* sql<WaitingRow>`
      select asked.run_id, task.id, task.type, task.digest from unnest(${runs}::uuid[]) as asked (run_id)
      cross join lateral (
        select id, type, digest from kb.tasks where run_id = asked.run_id and project_id = ${projectId} and status = 'pending'
          and (type = 'question' or type like '%\\_suggestion') and owner = '' and deleted_at is null
        order by type <> 'question', id limit ${taskBounds.suggestionsAtOnce}) task`
  }, orDie)

  const declinedBy = Effect.fnUntraced(function* (by: UserId, runs: ReadonlyArray<RunId>) {
    if (runs.length === 0) return []
    const { projectId } = yield* ProjectTransaction
    return yield* sql<{ readonly runId: RunId; readonly key: string }>`
      select run_id, key from kb.declined_inputs
      where project_id = ${projectId} and run_id = any(${runs}::uuid[]) and user_id = ${by}`
  }, orDie)

  return Effect.fnUntraced(function* (
    caller: TaskCaller,
    found: ReadonlyArray<Run>
  ): Effect.fn.Return<ReadonlyArray<Glance>, never, ProjectTransaction> {
    const terms = termsOf(caller)
    const runs = found.filter(({ owner }) => mayRead(caller.principal, owner))
    const asking = terms.canElicit
      ? runs.filter(({ status }) => status === "paused" || isTerminal(status)).map(({ id }) => id)
      : []
    const waits = Map.groupBy(yield* waiting(asking), ({ runId }) => runId)
    const declined = Map.groupBy(yield* declinedBy(caller.principal.userId, asking), ({ runId }) => runId)
    return runs.map((run) => {
      const rows = waits.get(run.id) ?? []
      const names = {
        questions: rows.filter(({ type }) => type === "question"),
        suggestions: rows.filter(({ type }) => type !== "question")
      }
      const own = { ...terms, declined: new Set(declined.get(run.id)?.map(({ key }) => key)) }
      const hasFailed = run.status === "failed"
      return { task: listedTaskOf(run, names, own), hasFailed, keys: keysOf(run, names, own) }
    })
  })
})
