/**
 * Reads tasks, and gives new ones their numbers.
 *
 * Flow: graph → outbox → dispatch → run → tool → **task**
 */
import type { TaskId } from "@tropism/domain/ids"
import type { TaskStatus, TaskType } from "@tropism/domain/task"
import { Effect } from "effect"
import { SqlClient, type Statement } from "effect/sql"
import { onlyRow, orDie, ProjectTransaction } from "../database/database.ts"
import { type TaskRow, toTask } from "./rows.ts"

export interface TaskFilter {
  readonly status?: TaskStatus | undefined
  readonly type?: TaskType | undefined
}

export const makeTaskReading = Effect.gen(function* () {
  const sql = yield* SqlClient.SqlClient

  /** The next number of the project; its counter is held until the transaction ends. */
  const nextNumber = Effect.gen(function* () {
    const { projectId } = yield* ProjectTransaction
    const row = yield* Effect.flatMap(
      sql<{ lastNumber: bigint }>`
        update kb.task_counters set last_number = last_number + 1 where project_id = ${projectId} returning last_number`,
      onlyRow
    )
    return Number(row.lastNumber)
  })

  const select = (where: ReadonlyArray<Statement.Fragment>, limit: number) =>
    sql<TaskRow>`
      select task.*, agent.name as agent_name, to_jsonb(target) as target
      from kb.tasks task join kb.agents agent on agent.id = task.agent_id
      left join lateral (
        select id, type, key, properties, version, actor_type as "actorType", actor_id as "actorId", created_at as "createdAt", updated_at as "updatedAt"
        from kb.graph_objects where id = task.target_id and deleted_at is null
      ) target on true
      where ${sql.and(where)} order by task.id desc limit ${limit}`

  const get = Effect.fn("Tasks.get")(function* (id: TaskId) {
    const { projectId } = yield* ProjectTransaction
    const [row] = yield* select([sql`task.id = ${id} and task.project_id = ${projectId}`], 1)
    return row && toTask(row)
  }, orDie)

  const list = Effect.fn("Tasks.list")(function* (
    { status, type }: TaskFilter,
    before: string | undefined,
    limit: number
  ) {
    const { projectId } = yield* ProjectTransaction
    const rows = yield* select(
      [
        sql`task.project_id = ${projectId}`,
        ...(status === undefined ? [] : [sql`task.status = ${status}`]),
        ...(type === undefined ? [] : [sql`task.type = ${type}`]),
        ...(before === undefined ? [] : [sql`task.id < ${before}`])
      ],
      limit
    )
    return rows.map(toTask)
  }, orDie)

  return { nextNumber, get, list }
})
