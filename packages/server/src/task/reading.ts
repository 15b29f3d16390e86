/**
 * Reads tasks, and gives the project's their numbers.
 *
 * Flow: graph → outbox → dispatch → run → tool → **task**
 *
 * A reader sees what is the project's, and of the todos his own: another's is
 * not there, whoever asks. Nor is a question that was asked in somebody else's
 * own context.
 */
import type { AgentId, ProjectId, RunId, TaskId, UserId } from "@tropism/domain/ids"
import { stalenessBounds } from "@tropism/domain/staleness"
import { isSuggestion, type SuggestionType, TaskStatus, type TaskType } from "@tropism/domain/task"
import { Effect } from "effect"
import { SqlClient, type Statement } from "effect/sql"
import { onlyRow, orDie, ProjectTransaction } from "../database/database.ts"
import { type RevisionRow, type TaskRow, toRevision, toTask } from "./rows.ts"
import { changedEvidence, foundStanding, type Question, rightsAtStake, standingOf } from "./standing.ts"

export interface TaskFilter {
  readonly status?: TaskStatus | undefined
  readonly type?: TaskType | undefined
  readonly assignee?: UserId | undefined
  readonly agentId?: AgentId | undefined
  /** Only the project's tasks: nobody's todos. */
  readonly isOfProject?: boolean | undefined
  /** One of the project's has it, and one of the reader's todos. */
  readonly number?: number | undefined
}

export const makeTaskReading = Effect.gen(function* () {
  const sql = yield* SqlClient.SqlClient

  /** Holds the project's task numbers until the transaction ends: nobody else can give one meanwhile. */
  const holdNumbers = Effect.gen(function* () {
    const { projectId } = yield* ProjectTransaction
    yield* sql`select 1 from kb.task_counters where project_id = ${projectId} for no key update`
  })

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

  /** What every select asks of a suggestion that waits. */
  const beforeTheClick: Question = {
    isAsked: sql`task.status = 'pending'`,
    base: sql`task.base_version`,
    aroundLook: stalenessBounds.lookedRelationships
  }

  const select = Effect.fnUntraced(function* (
    which: Statement.Fragment,
    question: Question = beforeTheClick
  ) {
    const { projectId } = yield* ProjectTransaction
    return yield* sql<TaskRow>`
      select task.*, agent.name as agent_name,
        case when agent.deleted_at is not null then 'deleted' when agent.enabled then 'enabled' else 'disabled' end as agent_state, to_jsonb(target) as target, to_jsonb(relationship) as relationship,
        (select jsonb_build_object('runId', run.id, 'status', run.status) from kb.agent_runs run where run.id = task.rerun_id) as rerun,
        ${foundStanding(sql, projectId, question)}, ${changedEvidence(sql, projectId)}, ${rightsAtStake(sql, projectId)}
      from kb.tasks task
      left join kb.agents agent on agent.id = task.agent_id
      left join lateral (
        select id, type, key, properties, untrusted, version, actor_type as "actorType", actor_id as "actorId", created_at as "createdAt", updated_at as "updatedAt"
        from kb.graph_objects where id = task.target_id and deleted_at is null
      ) target on true
      left join lateral (
        select id, type, from_id as "fromId", to_id as "toId", properties, untrusted, version, actor_type as "actorType",
          actor_id as "actorId", created_at as "createdAt", updated_at as "updatedAt"
        from kb.graph_relationships where id = (task.payload #>> '{suggestedChanges,relationshipId}')::uuid and deleted_at is null limit 1
      ) relationship on true
      where ${which} order by task.id desc`
  })

  const get = Effect.fn("Tasks.get")(function* (id: TaskId, reader: UserId) {
    const { projectId } = yield* ProjectTransaction
    const [row] = yield* select(
      sql`task.id = ${id} and task.project_id = ${projectId} and task.owner in ('', ${reader}) and task.deleted_at is null
        and ${isAskedOf(sql, "task", reader)}`
    )
    return row && toTask(row)
  }, orDie)

  const hold = Effect.fn("Tasks.hold")(function* (id: TaskId, reader: UserId) {
    const { projectId } = yield* ProjectTransaction
    yield* sql`select 1 from kb.tasks where id = ${id} and project_id = ${projectId} for no key update`
    return yield* get(id, reader)
  }, orDie)

  /** What a suggestion meets now, whatever its status, seen from a version. */
  const standing = Effect.fn("Tasks.standing")(function* (id: TaskId, baseVersion: number | null) {
    const question: Question = { isAsked: sql`true`, base: sql`${baseVersion}::int`, aroundLook: null }
    const row = yield* Effect.flatMap(select(sql`task.id = ${id}`, question), onlyRow)
    return standingOf({ ...row, type: row.type as SuggestionType, baseVersion, found: row.found ?? {} })
  }, orDie)

  const list = Effect.fn("Tasks.list")(function* (
    filter: TaskFilter,
    reader: UserId,
    before: string | undefined,
    limit: number
  ) {
    const { projectId } = yield* ProjectTransaction
    const rows = yield* select(
      sql`task.id in (${pageOfTasks(sql, { projectId, reader }, filter, before, limit)})`
    )
    return rows.map(toTask)
  }, orDie)

  const undecidedOf = Effect.fn("Tasks.undecidedOf")(function* (runId: RunId, limit: number) {
    const { projectId } = yield* ProjectTransaction
    const rows = yield* select(sql`task.id in (
      select id from kb.tasks where run_id = ${runId} and project_id = ${projectId} and status = 'pending'
        and type like '%\_suggestion' and owner = '' and deleted_at is null order by id limit ${limit})`)
    return rows.map(toTask).filter(isSuggestion).toReversed()
  }, orDie)

  const revisions = Effect.fn("Tasks.revisions")(function* (
    id: TaskId,
    before: number | undefined,
    limit: number
  ) {
    const { projectId } = yield* ProjectTransaction
    const rows = yield* sql<RevisionRow>`
      select * from kb.task_revisions where task_id = ${id} and project_id = ${projectId}
        and revision < ${before ?? 2_147_483_647}::bigint order by revision desc limit ${limit}`
    return rows.map(toRevision)
  }, orDie)

  return { holdNumbers, nextNumber, get, hold, list, undecidedOf, standing, revisions }
})

/** A question is for everybody in the project, or for the one in whose own context it was asked. */
const isAskedOf = (sql: SqlClient.SqlClient, task: "task" | "tasks", reader: UserId) => sql`(
  ${sql.literal(task)}.type <> 'question' or not ${isOfOwned(sql, task, sql`context.owner <> ${reader}`)})`

/** Whether the run of a task worked in a context with an owner of whom this holds. */
export const isOfOwned = (
  sql: SqlClient.SqlClient,
  task: "task" | "tasks",
  which: Statement.Fragment
): Statement.Fragment => {
  const row = sql.literal(task)
  return sql`exists (
    select from kb.agent_runs run join kb.contexts context on context.project_id = run.project_id and context.name = run.context_name
    where run.id = ${row}.run_id and run.project_id = ${row}.project_id and ${which})`
}

/**
 * The ids of one page, newest first.
 *
 * **Details** Each owner's tasks in each state lie in an index in the order of
 * the list, so a page reads no more than it shows of each of them. States and
 * types stand in the statement itself: of a state in which there is nothing, the
 * planner would else expect its share, and read all tasks by id to find none.
 */
export const pageOfTasks = (
  sql: SqlClient.SqlClient,
  { projectId, reader }: { readonly projectId: ProjectId; readonly reader: UserId },
  { agentId, assignee, isOfProject, number, status, type }: TaskFilter,
  before: string | undefined,
  limit: number
): Statement.Statement<{ readonly id: TaskId }> => {
  const narrowed = sql.and([
    sql`project_id = ${projectId} and deleted_at is null and ${isAskedOf(sql, "tasks", reader)}`,
    ...(type === undefined ? [] : [sql.literal(`type = '${type}'`)]),
    ...(assignee === undefined ? [] : [sql`assignee = ${assignee}`]),
    ...(agentId === undefined ? [] : [sql`agent_id = ${agentId}`]),
    ...(number === undefined ? [] : [sql`number = ${number}`]),
    ...(before === undefined ? [] : [sql`id < ${before}`])
  ])
  // All types but one are the project's; todos are of no agent and for nobody but their owner.
  const projects = sql`owner = ''`
  const own = sql`owner = ${reader} and type = 'todo'`
  const hasTodos = isOfProject !== true && agentId === undefined && assignee === undefined
  const whose = { todo: [own], any: hasTodos ? [projects, own] : [projects] }
  const parts = (type === "todo" ? whose.todo : type === undefined ? whose.any : [projects]).flatMap(
    (owned) =>
      (status === undefined ? TaskStatus.literals : [status]).map(
        (state) =>
          sql`(select id from kb.tasks where ${owned} and ${sql.literal(`status = '${state}'`)} and ${narrowed} order by id desc limit ${limit})`
      )
  )
  return sql`select listed.id from (${sql.join(" union all ", false)(parts)}) listed order by listed.id desc limit ${limit}`
}
