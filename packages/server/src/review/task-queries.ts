/**
 * Reads tasks and assigns their numbers in a project.
 *
 * **Invariant** A reader sees the project's tasks and only their own todos; another's todo does not exist for them. Nor
 * does a question that was asked in another person's own context.
 */
import {
  type Capabilities,
  denies,
  deniesCascade,
  narrow,
  type Powers,
  type RelationshipKind
} from "@tropism/domain/capability"
import type { Change } from "@tropism/domain/change"
import type { GraphObject, Relationship } from "@tropism/domain/graph"
import type { AgentId, ProjectId, RunId, TaskId, UserId } from "@tropism/domain/ids"
import type { Properties } from "@tropism/domain/json"
import {
  stalenessBounds,
  type ChangedEvidence,
  toldStaleness,
  type AddedRelationship,
  type Standing
} from "@tropism/domain/staleness"
import {
  isSuggestion,
  type SuggestionType,
  TaskStatus,
  type TaskType,
  type PromotionTask,
  type QuestionTask,
  type SuggestionTask,
  type Task,
  type TaskRevision,
  type TodoTask,
  type UndoTask
} from "@tropism/domain/task"
import { Effect } from "effect"
import { SqlClient, type Statement } from "effect/sql"
import { onlyRow, orDie, ProjectTransaction } from "../database/database.ts"
import { explainDenial } from "../graph/authority.ts"

export interface TaskFilter {
  readonly status?: TaskStatus | undefined
  readonly type?: TaskType | undefined
  readonly assignee?: UserId | undefined
  readonly agentId?: AgentId | undefined
  /** Only the project's tasks, without todos. */
  readonly isOfProject?: boolean | undefined
  /** Matches one task of the project and one todo of the reader. */
  readonly number?: number | undefined
}

export const makeTaskReading = Effect.gen(function* () {
  const sql = yield* SqlClient.SqlClient

  /** Locks the project's task counter until the transaction ends. */
  const holdNumbers = Effect.gen(function* () {
    const { projectId } = yield* ProjectTransaction
    yield* sql`select 1 from kb.task_counters where project_id = ${projectId} for no key update`
  })

  /** Takes the project's next number; its counter stays locked until the transaction ends. */
  const nextNumber = Effect.gen(function* () {
    const { projectId } = yield* ProjectTransaction
    const row = yield* Effect.flatMap(
      sql<{ lastNumber: bigint }>`
        update kb.task_counters set last_number = last_number + 1 where project_id = ${projectId} returning last_number`,
      onlyRow
    )
    return Number(row.lastNumber)
  })

  /** What every select computes for an open suggestion. */
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

  /** Compares a suggestion with the graph, in any status, seen from a version. */
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

/** A question is visible to the whole project, or only to the owner of the context it was asked in. */
const isAskedOf = (sql: SqlClient.SqlClient, task: "task" | "tasks", reader: UserId) => sql`(
  ${sql.literal(task)}.type <> 'question' or not ${isOfOwned(sql, task, sql`context.owner <> ${reader}`)})`

/** Whether the task's run worked in a context whose owner fulfils the condition. */
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
 * Returns the ids of one page, newest first.
 *
 * **Details** An index holds each owner's tasks in each state in list order, so a page reads no more of each than it shows.
 * States and types are literals in the statement: for an empty state the planner would otherwise assume an average share and
 * read all tasks by id.
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
  // All types but todos belong to the project; a todo has no agent and is visible to its owner only.
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

// Converts task rows to domain types.

/** Every column of any kind of task; null where the kind does not have it. */
interface TaskRow extends Omit<
  SuggestionTask,
  | "number"
  | "createdAt"
  | "resolvedAt"
  | "refinedAt"
  | "expiresAt"
  | "target"
  | "relationship"
  | "staleness"
  | "denial"
  | "type"
  | "payload"
  | "outcome"
> {
  readonly type: Task["type"]
  readonly payload: unknown
  readonly outcome: unknown
  readonly revision: number
  readonly owner: string
  readonly number: bigint
  readonly createdAt: Date
  readonly resolvedAt: Date | null
  readonly refinedAt: Date | null
  readonly expiresAt: Date | null
  readonly target: GraphObject | null
  readonly relationship: Relationship | null
  /** The comparison with the graph; null when it was not computed. */
  readonly found: Found | null
  readonly evidenceChanged: ReadonlyArray<ChangedEvidence> | null
  readonly rights: AtStake | null
}

/** The payload has the type that `type` names; one statement writes both. */
const toTask = (row: TaskRow): Task => {
  switch (row.type) {
    case "todo":
      return { ...commonOf(row), type: row.type, owner: row.owner as TodoTask["owner"] }
    case "question":
      return {
        ...commonOf(row),
        ...fromAgentOf(row),
        type: row.type,
        payload: row.payload as QuestionTask["payload"]
      }
    case "undo":
      return {
        ...commonOf(row),
        type: row.type,
        payload: row.payload as UndoTask["payload"],
        digest: row.digest,
        revision: row.revision,
        outcome: row.outcome as UndoTask["outcome"]
      }
    case "promotion":
      return {
        ...commonOf(row),
        type: row.type,
        payload: row.payload as PromotionTask["payload"],
        digest: row.digest,
        agentId: row.agentId,
        agentName: row.agentName
      }
    default: {
      const payload = row.payload as SuggestionTask["payload"]
      return {
        ...commonOf(row),
        ...fromAgentOf(row),
        type: row.type,
        payload,
        agentState: row.agentState,
        agentVersion: row.agentVersion,
        revision: row.revision,
        refinedAt: row.refinedAt?.toISOString() ?? null,
        expiresAt: row.expiresAt?.toISOString() ?? null,
        baseVersion: row.baseVersion,
        evidence: row.evidence,
        untrusted: row.untrusted,
        target: row.target && inWireTime(row.target),
        relationship: row.relationship && inWireTime(row.relationship),
        staleness:
          row.found &&
          toldStaleness(
            payload.suggestedChanges,
            standingOf({ ...row, type: row.type, found: row.found }),
            row.evidenceChanged ?? []
          ),
        denial: row.rights && denialOf(payload.suggestedChanges, row.rights),
        rerun: row.rerun,
        outcome: row.outcome as SuggestionTask["outcome"]
      }
    }
  }
}

interface RevisionRow extends Omit<TaskRevision, "createdAt"> {
  readonly createdAt: Date
}

const toRevision = (row: RevisionRow): TaskRevision => ({
  revision: row.revision,
  payload: row.payload,
  digest: row.digest,
  runId: row.runId,
  agentVersion: row.agentVersion,
  baseVersion: row.baseVersion,
  evidence: row.evidence,
  createdAt: row.createdAt.toISOString()
})

const commonOf = (row: TaskRow) => ({
  id: row.id,
  number: Number(row.number),
  status: row.status,
  title: row.title,
  description: row.description,
  resolvedBy: row.resolvedBy,
  resolutionNote: row.resolutionNote,
  createdAt: row.createdAt.toISOString(),
  resolvedAt: row.resolvedAt?.toISOString() ?? null
})

const fromAgentOf = (row: TaskRow) => ({
  digest: row.digest,
  agentId: row.agentId,
  agentName: row.agentName,
  runId: row.runId,
  assignee: row.assignee
})

/** PostgreSQL formats an instant inside JSON in its own way. */
const inWireTime = <A extends { readonly createdAt: string; readonly updatedAt: string }>(entity: A): A => ({
  ...entity,
  createdAt: new Date(entity.createdAt).toISOString(),
  updatedAt: new Date(entity.updatedAt).toISOString()
})

// Compares a suggested change with the graph, as part of a select of tasks.
//
// One expression serves the list, the preview and the approval, which locks the target. Each kind of change reads only what
// concerns it, by index and bounded; decided tasks are not compared.

/** What to compute for each task of a select. */
interface Question {
  /** The tasks to compute it for. */
  readonly isAsked: Statement.Fragment
  /** The version that was seen. */
  readonly base: Statement.Fragment
  /** Relationships read on either side of an object, newest first; null for all. */
  readonly aroundLook: number | null
}

/** Result of the comparison in the database. */
interface Found {
  /** Properties at the base version, when it is not the current one. */
  readonly base?: Properties | null
  readonly lacksEnd?: boolean
  readonly added?: ReadonlyArray<AddedRelationship> | null
  readonly takenBy?: string | null
}

/** A JSON value for each task, for a statement with `task`, `target` and `relationship`. */
const foundStanding = (
  sql: SqlClient.SqlClient,
  projectId: ProjectId,
  { aroundLook, base, isAsked }: Question
) => {
  const said = (path: string) => sql.literal(`(task.payload #>> '{suggestedChanges,${path}}')`)
  const isLive = (id: Statement.Fragment) => sql`exists (
    select 1 from kb.graph_objects one where one.id = ${id} and one.project_id = ${projectId} and one.deleted_at is null)`
  const objectBase = sql`
    'base', (select properties from kb.graph_object_versions was
      where was.object_id = target.id and was.version = ${base} and was.version <> target.version)`
  const around = (end: "from" | "to") => sql`(
    select id, type, from_id, to_id from kb.graph_relationships one
    where one.${sql.literal(end)}_id = task.target_id and one.deleted_at is null order by id desc limit ${aroundLook}::int)`
  return sql`
    case when not (${isAsked}) then null else case task.type
      when 'object_create_suggestion' then jsonb_build_object('takenBy', (
        select id from kb.graph_objects one where one.project_id = ${projectId} and one.type = ${said("objectType")}
          and one.key = ${said("key")} and one.deleted_at is null))
      when 'object_update_suggestion' then jsonb_build_object(${objectBase})
      when 'object_delete_suggestion' then jsonb_build_object(${objectBase}, 'added', (
        select jsonb_agg(jsonb_build_object('id', one.id, 'type', one.type, 'fromId', one.from_id, 'toId', one.to_id) order by one.id)
        from (${around("from")} union ${around("to")}) one
        cross join lateral (
          select actor_type, actor_id, event_id from kb.graph_relationship_versions version
          where version.relationship_id = one.id and version.type = 'created' order by version.version desc limit 1
        ) made
        join kb.graph_events event on event.id = made.event_id
        where (made.actor_type <> 'agent' or made.actor_id is distinct from task.agent_id::text)
          and case when task.seen_position is null then event.created_at > task.created_at
            else event.position is null or event.position > task.seen_position end))
      when 'relationship_create_suggestion' then jsonb_build_object(
        'lacksEnd', not (${isLive(sql`${said("relationship,fromId")}::uuid`)} and ${isLive(sql`${said("relationship,toId")}::uuid`)}),
        'takenBy', (select id from kb.graph_relationships one where one.project_id = ${projectId} and one.deleted_at is null
          and one.type = ${said("relationship,type")} and one.from_id = ${said("relationship,fromId")}::uuid
          and one.to_id = ${said("relationship,toId")}::uuid))
      else jsonb_build_object('base', (select properties from kb.graph_relationship_versions was
        where was.relationship_id = relationship.id and was.version = ${base} and was.version <> relationship.version))
    end end as found`
}

/** What an approval checks: the powers of the agent and of those it acts for, and the types that the change touches. */
interface AtStake {
  readonly capabilities: Capabilities | null
  readonly above: ReadonlyArray<{ readonly name: string; readonly capabilities: Capabilities | null }>
  readonly types: ReadonlyArray<string>
  /** For an object deletion: the kinds of relationships deleted with it, in the order in which the gateway checks them. */
  readonly around: ReadonlyArray<RelationshipKind>
}

/**
 * The rights by which each open suggestion is judged, as a JSON value; null where no rights are limited.
 *
 * **Details** For a statement with `task`, `agent`, `target` and `relationship`. An agent acts for few others, as deep as runs
 * may spawn runs. For an object deletion it reads as many relationships as the staleness check; the approval reads all.
 */
const rightsAtStake = (sql: SqlClient.SqlClient, projectId: ProjectId) => {
  const said = (path: string) => sql.literal(`(task.payload #>> '{suggestedChanges,${path}}')::uuid`)
  const endTypes = (from: Statement.Fragment, to: Statement.Fragment) => sql`(
    select jsonb_agg(one.type order by one.id) from kb.graph_objects one
    where one.project_id = ${projectId} and one.id in (${from}, ${to}))`
  const around = (end: "from" | "to") => sql`(
    select type, from_id, to_id from kb.graph_relationships one where one.${sql.literal(end)}_id = target.id and one.deleted_at is null
    order by id desc limit ${stalenessBounds.lookedRelationships})`
  const bounding = sql`
    select distinct above.id, above.name, above.capabilities from kb.agent_runs run
    join kb.agent_runs ancestor on ancestor.id = any(run.ancestors) join kb.agents above on above.id = ancestor.agent_id
    where run.id = task.run_id and run.parent_run_id is not null and above.id <> agent.id`
  return sql`
    case when task.status = 'pending' and task.payload ? 'suggestedChanges'
      and (agent.capabilities is not null or exists (select from (${bounding}) above where above.capabilities is not null))
    then jsonb_build_object(
      'capabilities', agent.capabilities,
      'above', (select coalesce(jsonb_agg(jsonb_build_object('name', above.name, 'capabilities', above.capabilities) order by above.id), '[]')
        from (${bounding}) above),
      'types', coalesce(case task.type
        when 'object_create_suggestion' then jsonb_build_array(task.payload #> '{suggestedChanges,objectType}')
        when 'relationship_create_suggestion' then ${endTypes(said("relationship,fromId"), said("relationship,toId"))}
        when 'relationship_update_suggestion' then ${endTypes(sql`relationship."fromId"`, sql`relationship."toId"`)}
        when 'relationship_delete_suggestion' then ${endTypes(sql`relationship."fromId"`, sql`relationship."toId"`)}
        else (select jsonb_build_array(target.type) where target.id is not null) end, '[]'),
      'around', case when task.type = 'object_delete_suggestion' then (
        select coalesce(jsonb_agg(jsonb_build_object('type', kind.type, 'fromType', kind.from_type, 'toType', kind.to_type)
          order by kind.type, kind.from_type, kind.to_type), '[]')
        from (select distinct one.type, start.type as from_type, finish.type as to_type from (${around("from")} union ${around("to")}) one
          join kb.graph_objects start on start.id = one.from_id join kb.graph_objects finish on finish.id = one.to_id) kind
      ) else '[]' end
    ) end as rights`
}

/** Returns why the rights of the agent, or of one it acts for, forbid a change; null when they permit it. */
const denialOf = (change: Change, { above, around, capabilities, types }: AtStake): string | null => {
  const own: Powers = { capabilities, executionMode: "suggest", hybridPolicy: null }
  const powers = above.reduce<Powers>((all, one) => narrow(all, { ...own, ...one }), own)
  const denial = denies(powers.capabilities, change.type, types) ?? deniesCascade(powers.capabilities, around)
  return denial === undefined ? null : explainDenial({ actsFor: above.map(({ name }) => name) }, denial)
}

/** For each task, the objects whose newest version read by the run is not the current one. */
const changedEvidence = (sql: SqlClient.SqlClient, projectId: ProjectId) => sql`
    case when task.status = 'pending' then (
      select jsonb_agg(jsonb_build_object('objectId', read.id, 'type', read.type, 'version', read.version, 'currentVersion', now_is.live_version)
        order by read.id)
      from (
        select "objectId" as id, min(type) as type, max(version) as version
        from jsonb_to_recordset(task.evidence) as read("objectId" uuid, type text, version int) group by 1
      ) read
      left join lateral (
        select version, case when deleted_at is null then version end as live_version from kb.graph_objects object
        where object.id = read.id and object.project_id = ${projectId} limit 1
      ) now_is on true
      where now_is.version is distinct from read.version
    ) end as evidence_changed`

/** A suggestion with its comparison. */
export interface Asked extends Pick<SuggestionTask, "type" | "baseVersion" | "target" | "relationship"> {
  readonly found: Found
}

/** Converts the comparison for the domain rule. */
const standingOf = ({ baseVersion, found, relationship, target, type }: Asked): Standing => {
  const isNew = type === "object_create_suggestion" || type === "relationship_create_suggestion"
  const current = target ?? relationship
  return {
    current,
    base:
      isNew || baseVersion === null
        ? null
        : {
            version: baseVersion,
            properties: current?.version === baseVersion ? current.properties : (found.base ?? {})
          },
    isGone: isNew ? found.lacksEnd === true : current === null,
    added: found.added ?? [],
    takenBy: found.takenBy ?? null
  }
}
