/**
 * Ends promotions: a change of their kind was undone, or a person takes them back.
 *
 * Flow: graph → outbox → dispatch → run → tool → **task**
 *
 * Whoever ends a promotion waits for the writes that it lets be made, which hold
 * it, and every later one asks again. Tasks are held first, then records, then
 * promotions, and the graph after all of them. From here on reviews count anew.
 */
import type { EndReason } from "@tropism/domain/autonomy"
import type { AgentId, GraphEventId, PromotionId, TaskId, UserId } from "@tropism/domain/ids"
import { Effect } from "effect"
import { SqlClient } from "effect/sql"
import { ProjectTransaction } from "../database/database.ts"
import { inTurn } from "../database/turns.ts"

/** The verbs by which promotions end. */
export const makeDemoting = Effect.gen(function* () {
  const sql = yield* SqlClient.SqlClient

  /** Takes a promotion back, by whatever door; false when it does not stand. */
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

  /** Counts changes that agents made and a person has undone, and ends what let them be made without asking. */
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
    // A statement of its own: the records may have been waited for, and whoever held them may have promoted.
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

  /** Nobody need look at a promotion any more that has ended otherwise. */
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

/** For what an agent's version is trusted. */
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
