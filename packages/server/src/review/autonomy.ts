/**
 * Autonomy that agents have earned: counted from reviews, checked by the gate, ended by reverts or people.
 *
 * Whether a promotion applies is decided at the write, by the agents as they are then.
 */
import {
  acceptanceRate,
  type Autonomy as Earned,
  type Promotion,
  reviewsIn,
  type ReviewRecord,
  type EndReason,
  earnsTrust,
  type Verdict
} from "@tropism/domain/autonomy"
import { type ChangeKind, type Powers, waitsForTrust } from "@tropism/domain/capability"
import type { AgentId, GraphEventId, PromotionId, RunId, UserId, TaskId } from "@tropism/domain/ids"
import { canonicalJson } from "@tropism/domain/json"
import type { PromotionPayload } from "@tropism/domain/task"
import { Context, Effect, Layer } from "effect"
import { SqlClient } from "effect/sql"
import { onlyRow, orDie, ProjectTransaction } from "../database/database.ts"
import { inTurn } from "../database/fair-row-locks.ts"
import { Ids } from "../ids.ts"
import { taskLimits } from "./limits.ts"
import { digestOf } from "./task-digest.ts"
import { makeTaskReading } from "./task-queries.ts"

type InProject<A> = Effect.Effect<A, never, ProjectTransaction>

export class Autonomy extends Context.Service<
  Autonomy,
  {
    /** Returns what an agent's version (or its current one) has earned; undefined when there is no such version. */
    readonly of: (agentId: AgentId, version: number | undefined) => InProject<Earned | undefined>
    /**
     * Returns the promotion by which a run may make changes of this kind without approval, locked until the transaction ends.
     *
     * **Details** Every hybrid agent among the run's own and its parents must have earned it at the version its run pins. Of
     * several promotions it returns the one of the run's own agent, else of the nearest parent.
     */
    readonly trusted: (
      runId: RunId,
      operation: ChangeKind,
      objectType: string
    ) => InProject<PromotionId | undefined>
    /** Counts agents' changes that a person has undone, and ends the promotions of their kinds. */
    readonly reverted: (eventIds: ReadonlyArray<GraphEventId>, by: UserId, note: string) => InProject<void>
    /** Revokes a promotion; undefined when there is none, false when it has ended. */
    readonly reverse: (
      agentId: AgentId,
      id: PromotionId,
      by: UserId,
      note: string | null
    ) => InProject<Promotion | false | undefined>
  }
>()("@tropism/server/task/Autonomy") {
  static readonly layer = Layer.effect(
    Autonomy,
    Effect.gen(function* () {
      const sql = yield* SqlClient.SqlClient
      const demoting = yield* makeDemotions

      const of = Effect.fn("Autonomy.of")(function* (agentId: AgentId, version: number | undefined) {
        const { projectId } = yield* ProjectTransaction
        const [agent] = yield* sql<PresentAgent>`
          select known.version, agent.execution_mode, agent.hybrid_policy, agent.enabled
          from kb.agents agent join kb.agent_versions known on known.agent_id = agent.id
            and known.version = coalesce(${version ?? null}::int, agent.version)
          where agent.id = ${agentId} and agent.project_id = ${projectId} and agent.deleted_at is null`
        if (!agent) return undefined
        const limit = taskLimits.autonomyShown
        const records = yield* sql<RecordRow>`
          select record.*, promotion.id as promotion_id from kb.review_records record
          left join lateral (
            select id from kb.promotions standing where standing.ended_at is null
              and (standing.agent_id, standing.agent_version, standing.operation, standing.object_type)
                = (record.agent_id, record.agent_version, record.operation, record.object_type) limit 1
          ) promotion on true
          where record.agent_id = ${agentId} and record.agent_version = ${agent.version} and record.project_id = ${projectId}
          order by record.updated_at desc, record.operation, record.object_type limit ${limit + 1}`
        const promotions = yield* sql<PromotionRow>`
          select * from kb.promotions where agent_id = ${agentId} and agent_version = ${agent.version} and project_id = ${projectId}
          order by id desc limit ${limit + 1}`
        return {
          agentId,
          agentVersion: agent.version,
          withoutEffect: idleReason(agent),
          records: records.slice(0, limit).map(toRecord),
          promotions: promotions.slice(0, limit).map(toPromotion),
          truncated: records.length > limit || promotions.length > limit
        }
      }, orDie)

      const trusted = Effect.fn("Autonomy.trusted")(function* (
        runId: RunId,
        operation: ChangeKind,
        objectType: string
      ) {
        const found = yield* Effect.flatMap(
          sql<{ readonly isTrusted: boolean; readonly promotionId: PromotionId | null }>`
            with asking as (
              select distinct on (run.agent_id, run.agent_version) run.agent_id, run.agent_version, run.spawn_depth
              from kb.agent_runs own
              cross join lateral (select own.id union all select unnest(own.ancestors)) above (id)
              join kb.agent_runs run on run.id = above.id join kb.agents agent on agent.id = run.agent_id
              where own.id = ${runId} and agent.execution_mode = 'hybrid'
              order by run.agent_id, run.agent_version, run.spawn_depth desc
            ), standing as (
              select promotion.id, asking.spawn_depth from kb.promotions promotion
              join asking using (agent_id, agent_version)
              where operation = ${operation} and object_type = ${objectType} and ended_at is null
            ), held as (
              select promotion.id, standing.spawn_depth from kb.promotions promotion join standing using (id)
              where promotion.id = any(${inTurn(sql, "promotion", sql`select id from standing`, "shared")}) and ended_at is null
              order by promotion.id for share of promotion
            )
            select (select count(*) from held) = (select count(*) from asking) as is_trusted,
              (select id from held order by spawn_depth desc limit 1) as promotion_id`,
          onlyRow
        )
        return found.isTrusted ? (found.promotionId ?? undefined) : undefined
      }, orDie)

      const reverse = Effect.fn("Autonomy.reverse")(function* (
        agentId: AgentId,
        id: PromotionId,
        by: UserId,
        note: string | null
      ) {
        const { projectId } = yield* ProjectTransaction
        const find = sql<PromotionRow>`
          select promotion.* from kb.promotions promotion join kb.agents agent on agent.id = promotion.agent_id
          where promotion.id = ${id} and agent.id = ${agentId} and agent.project_id = ${projectId} and agent.deleted_at is null`
        const [known] = yield* find
        if (!known) return undefined
        if (!(yield* demoting.reverse(id, by, note))) return false
        return toPromotion(yield* Effect.flatMap(find, onlyRow))
      }, orDie)

      return Autonomy.of({
        of,
        trusted,
        reverse,
        reverted: Effect.fn("Autonomy.reverted")(demoting.reverted, orDie)
      })
    })
  )
}

interface PresentAgent extends Pick<Powers, "executionMode" | "hybridPolicy"> {
  readonly version: number
  readonly enabled: boolean
}

/** Returns why what was earned does not apply now. */
const idleReason = ({ enabled, executionMode, hybridPolicy }: PresentAgent): string | null => {
  if (!enabled) return "The agent is disabled"
  if (executionMode === "suggest") return "The agent is in suggest mode: it always asks"
  if (executionMode === "execute") return "The agent is in execute mode: it never asks"
  return hybridPolicy?.promotion
    ? null
    : "The agent's hybridPolicy has no promotion: it asks where it is not sure"
}

interface RecordRow extends Omit<ReviewRecord, "acceptanceRate" | "counting"> {
  readonly acceptedBefore: number
  readonly editedBefore: number
  readonly rejectedBefore: number
}

const toRecord = (row: RecordRow): ReviewRecord => {
  const counting = {
    accepted: row.accepted - row.acceptedBefore,
    edited: row.edited - row.editedBefore,
    rejected: row.rejected - row.rejectedBefore
  }
  return {
    agentId: row.agentId,
    agentVersion: row.agentVersion,
    operation: row.operation,
    objectType: row.objectType,
    accepted: row.accepted,
    edited: row.edited,
    rejected: row.rejected,
    expired: row.expired,
    reverted: row.reverted,
    acceptanceRate: acceptanceRate(row),
    counting: { reviews: reviewsIn(counting), acceptanceRate: acceptanceRate(counting) },
    promotionId: row.promotionId
  }
}

interface PromotionRow extends Omit<Promotion, "promotedAt" | "endedAt"> {
  readonly promotedAt: Date
  readonly endedAt: Date | null
}

const toPromotion = (row: PromotionRow): Promotion => ({
  id: row.id,
  agentId: row.agentId,
  agentVersion: row.agentVersion,
  operation: row.operation,
  objectType: row.objectType,
  reviews: row.reviews,
  acceptanceRate: row.acceptanceRate,
  taskId: row.taskId,
  promotedAt: row.promotedAt.toISOString(),
  endedAt: row.endedAt?.toISOString() ?? null,
  endReason: row.endReason,
  endedBy: row.endedBy,
  note: row.note
})

// Ends promotions after a revert of a change of their kind, or when a person revokes them.
//
// Ending a promotion waits for the writes that hold it; every later write checks again. Lock order: tasks, records, promotions,
// then the graph. The review count restarts here.

/** The verbs that end promotions. */
export const makeDemotions = Effect.gen(function* () {
  const sql = yield* SqlClient.SqlClient

  /** Revokes a promotion; false when it is not active. */
  const reverse = Effect.fnUntraced(function* (id: PromotionId, by: UserId, note: string | null) {
    const { projectId } = yield* ProjectTransaction
    yield* sql`
      select 1 from kb.tasks where project_id = ${projectId} and id = (select task_id from kb.promotions where id = ${id}) for update`
    const ended = yield* sql<Ended>`
      with record as (
        select promotion.id from kb.promotions promotion
        join kb.review_records record using (agent_id, agent_version, operation, object_type)
        where promotion.id = ${id} and promotion.project_id = ${projectId} and promotion.ended_at is null
        for update of record
      ), ended as (
        update kb.promotions promotion set ended_at = clock_timestamp(), end_reason = 'reversed', ended_by = ${by}, note = ${note}
        from record where promotion.id = record.id and promotion.ended_at is null
          and promotion.id = any(${inTurn(sql, "promotion", sql`select id from record`, "alone")})
        returning promotion.*
      )
      update kb.review_records record set accepted_before = accepted, edited_before = edited, rejected_before = rejected
      from ended where (record.agent_id, record.agent_version, record.operation, record.object_type)
        = (ended.agent_id, ended.agent_version, ended.operation, ended.object_type)
      returning ended.task_id`
    yield* dropTasks(ended, "reversed", by)
    return ended.length > 0
  })

  /** Counts reverted changes of agents, and ends the promotions that allowed them. */
  const reverted = Effect.fnUntraced(function* (
    eventIds: ReadonlyArray<GraphEventId>,
    by: UserId,
    note: string
  ) {
    const { projectId } = yield* ProjectTransaction
    const work = sql`
      select run.agent_id, run.agent_version, event.object_type, case event.entity_type when 'graphObject' then '' else 'Relationship' end as entity,
        event.type, count(*)::int as times
      from kb.graph_events event join kb.agent_runs run on run.id = event.run_id
      where event.project_id = ${projectId} and event.id = any(${eventIds}::uuid[]) and event.actor_type = 'agent'
        and not (event.entity_type = 'relationship' and event.type = 'deleted' and exists (
          select from kb.graph_events deletion where deletion.id = any(${eventIds}::uuid[]) and deletion.entity_type = 'graphObject'
            and deletion.type = 'deleted' and deletion.tool_call_id = event.tool_call_id))
      group by run.agent_id, run.agent_version, event.object_type, event.entity_type, event.type`
    const undone = sql`
      select agent_id, agent_version, object_type, times,
        case type when 'created' then 'create' when 'updated' then 'update' else 'delete' end || entity as operation from (${work}) work`
    yield* sql`
      with undone as (${undone})
      select task.id from kb.tasks task join kb.promotions promotion on promotion.task_id = task.id
      join undone on (undone.agent_id, undone.agent_version, undone.operation, undone.object_type)
        = (promotion.agent_id, promotion.agent_version, promotion.operation, promotion.object_type)
      where promotion.ended_at is null order by task.id for update of task`
    const records = yield* sql<Kind>`
      with undone as (${undone})
      insert into kb.review_records as record (project_id, agent_id, agent_version, operation, object_type, reverted, updated_at)
      select ${projectId}::uuid, agent_id, agent_version, operation, object_type, times, now() from undone
      order by agent_id, agent_version, operation, object_type
      on conflict (agent_id, agent_version, operation, object_type) do update
        set reverted = record.reverted + excluded.reverted, accepted_before = record.accepted, edited_before = record.edited,
          rejected_before = record.rejected, updated_at = now()
      returning agent_id, agent_version, operation, object_type`
    // A separate statement: the one before may have waited for a transaction that promoted.
    const standing = sql`
      select promotion.id from jsonb_to_recordset(${JSON.stringify(records)}::text::jsonb)
        as record("agentId" uuid, "agentVersion" int, operation text, "objectType" text)
      join kb.promotions promotion on (promotion.agent_id, promotion.agent_version, promotion.operation, promotion.object_type)
        = (record."agentId", record."agentVersion", record.operation, record."objectType")
      where promotion.ended_at is null`
    const ended = yield* sql<Ended>`
      update kb.promotions promotion set ended_at = clock_timestamp(), end_reason = 'reverted', ended_by = ${by}, note = ${note}
      where promotion.ended_at is null and promotion.id = any(${inTurn(sql, "promotion", standing, "alone")})
      returning promotion.task_id`
    yield* dropTasks(ended, "reverted", by)
  })

  /** Closes the review tasks of promotions that ended. */
  const dropTasks = Effect.fnUntraced(function* (ended: ReadonlyArray<Ended>, reason: EndReason, by: UserId) {
    if (ended.length === 0) return
    yield* sql`
      update kb.tasks set status = 'expired', resolved_at = now(), resolution_note = ${noteOf[reason](by)}
      where id = any(${ended.map(({ taskId }) => taskId)}::uuid[]) and status = 'pending'`
  })

  return { reverse, reverted }
})

interface Ended {
  readonly taskId: TaskId
}

/** The kind of change that an agent's version is trusted with. */
interface Kind {
  readonly agentId: AgentId
  readonly agentVersion: number
  readonly operation: string
  readonly objectType: string
}

const noteOf: Readonly<Record<EndReason, (by: UserId) => string>> = {
  reversed: (by) => `The promotion has ended: ${by} took it back`,
  reverted: (by) => `The promotion has ended: ${by} undid a change of its kind`
}

// Counts reviews of suggestions, and promotes the agent version that has earned it.
//
// One statement counts a decision in its own transaction and locks the record, so concurrent decisions count one after the
// other. The active promotion is unique, so many sufficient decisions promote once. Lock order: tasks, records, the graph.

/** A record after a decision, and the agent as it is. */
interface Counted extends Pick<Powers, "executionMode" | "hybridPolicy"> {
  readonly agentId: AgentId
  readonly agentName: string
  readonly agentVersion: number
  readonly operation: ChangeKind
  readonly objectType: string
  /** Reviews since the last revert or reversal. */
  readonly accepted: number
  readonly edited: number
  readonly rejected: number
  /** Whether this is the agent's current version and the agent is active. */
  readonly isPresent: boolean
}

/** The verbs that count decisions. */
export const makeTrustCounts = Effect.gen(function* () {
  const sql = yield* SqlClient.SqlClient
  const ids = yield* Ids
  const { nextNumber } = yield* makeTaskReading

  /** Adds the outcomes of tasks to their records; skips tasks that are not suggestions. */
  const count = Effect.fnUntraced(function* (taskIds: ReadonlyArray<TaskId>, verdict: Verdict) {
    const { projectId } = yield* ProjectTransaction
    const column = sql(verdict)
    return yield* sql<Counted>`
      with decided as (
        select task.agent_id, task.agent_version, change ->> 'type' as operation,
          coalesce(change ->> 'objectType', change -> 'relationship' ->> 'type',
            (select type from kb.graph_objects object where object.id = (change ->> 'objectId')::uuid),
            (select type from kb.graph_relationships relationship where relationship.id = (change ->> 'relationshipId')::uuid)) as object_type
        from kb.tasks task
        cross join lateral (select task.payload -> 'suggestedChanges' as change) suggested
        where task.project_id = ${projectId} and task.id = any(${taskIds}::uuid[]) and task.agent_version is not null
      ), counted as (
        insert into kb.review_records as record (project_id, agent_id, agent_version, operation, object_type, ${column}, updated_at)
        select ${projectId}::uuid, agent_id, agent_version, operation, object_type, count(*), now() from decided
        where operation is not null and object_type is not null
        group by agent_id, agent_version, operation, object_type order by agent_id, agent_version, operation, object_type
        on conflict (agent_id, agent_version, operation, object_type)
          do update set ${column} = record.${column} + excluded.${column}, updated_at = now()
        returning *
      )
      select counted.agent_id, counted.agent_version, operation, object_type, accepted - accepted_before as accepted,
        edited - edited_before as edited, rejected - rejected_before as rejected, agent.name as agent_name, agent.execution_mode,
        agent.hybrid_policy, agent.version = counted.agent_version and agent.enabled and agent.deleted_at is null as is_present
      from counted join kb.agents agent on agent.id = counted.agent_id`
  })

  /** Promotes the agent unless it is promoted already, and notifies people. */
  const promote = Effect.fnUntraced(function* (counted: Counted) {
    const { projectId } = yield* ProjectTransaction
    const { agentId, agentVersion, objectType, operation } = counted
    const promotionId = (yield* ids.next) as PromotionId
    const taskId = (yield* ids.next) as TaskId
    const reviews = reviewsIn(counted)
    const rate = counted.accepted / reviews
    const [promoted] = yield* sql`
      insert into kb.promotions (id, project_id, agent_id, agent_version, operation, object_type, reviews, acceptance_rate, task_id)
      values (${promotionId}, ${projectId}, ${agentId}, ${agentVersion}, ${operation}, ${objectType}, ${reviews}, ${rate}, ${taskId})
      on conflict (agent_id, agent_version, operation, object_type) where ended_at is null do nothing returning id`
    if (!promoted) return
    const payload: PromotionPayload = {
      promotionId,
      agentId,
      agentVersion,
      operation,
      objectType,
      reviews,
      rate
    }
    const number = yield* nextNumber
    yield* sql`
      insert into kb.tasks (id, project_id, number, type, title, description, payload, digest, agent_id, agent_version, evidence, depth)
      values (${taskId}, ${projectId}, ${number}, 'promotion', ${titleOf(counted)}, ${descriptionOf(counted)},
        ${JSON.stringify(payload)}::text::jsonb, ${yield* digestOf(canonicalJson(payload))}, ${agentId}, ${agentVersion}, '[]', 0)`
  })

  /** Counts a person's decisions about suggestions, and promotes when they suffice by the agent's current policy. */
  const reviewed = Effect.fnUntraced(function* (
    taskIds: ReadonlyArray<TaskId>,
    verdict: Exclude<Verdict, "expired">
  ) {
    for (const counted of yield* count(taskIds, verdict))
      if (mayEarn(counted) && earnsTrust(counted.hybridPolicy, counted)) yield* promote(counted)
  })

  /** Counts expired suggestions; they earn nothing. */
  const expired = (taskIds: ReadonlyArray<TaskId>) => Effect.asVoid(count(taskIds, "expired"))

  return { reviewed, expired }
})

/** Whether autonomy can be earned: the agent's policy asks for approval of such changes only when it is unsure. */
const mayEarn = ({ executionMode, hybridPolicy, isPresent, operation }: Counted): boolean =>
  isPresent && waitsForTrust(executionMode, hybridPolicy, operation, { confidence: null, suggest: false })

/** What an agent does with objects of a type, as the end of a sentence. */
const deeds: Readonly<Record<ChangeKind, (type: string) => string>> = {
  create: (type) => `creates ${type} objects`,
  update: (type) => `updates ${type} objects`,
  delete: (type) => `deletes ${type} objects`,
  createRelationship: (type) => `creates ${type} relationships`,
  updateRelationship: (type) => `updates ${type} relationships`,
  deleteRelationship: (type) => `deletes ${type} relationships`
}

const titleOf = ({ agentName, objectType, operation }: Counted): string =>
  `${agentName} now ${deeds[operation](objectType)} without asking`

const descriptionOf = (counted: Counted): string =>
  `Of ${reviewsIn(counted)} reviews of version ${counted.agentVersion}, ${counted.accepted} took the suggestion as it was. ` +
  `Approve to say that you have seen it; reject to let the agent ask again.`
