/**
 * Reads the rejections that an agent's next run should see.
 */
import type { AgentId, ProjectId, TaskId } from "@tropism/domain/ids"
import type { Taint } from "@tropism/domain/taint"
import { Effect } from "effect"
import { SqlClient } from "effect/sql"
import { reviewLimits } from "./limits.ts"

/** A suggestion that a person rejected. */
export interface RejectedSuggestion {
  readonly number: number
  readonly title: string
  readonly change: unknown
  readonly resolvedBy: string
  readonly resolvedAt: Date
  readonly reason: string | null
  /** The untrusted sources that the suggesting run had read. */
  readonly untrusted: ReadonlyArray<Taint>
}

export const makeRejections = Effect.gen(function* () {
  const sql = yield* SqlClient.SqlClient

  /** Stores which objects newly rejected suggestions concern. */
  const keep = (ids: ReadonlyArray<TaskId>) =>
    Effect.asVoid(sql`
      insert into kb.rejections (project_id, agent_id, object_id, rejected_at, task_id)
      select project_id, agent_id, unnest(about), resolved_at, id from kb.tasks where id = any(${ids}::uuid[]) and status = 'rejected'`)

  /** An agent's rejections for some objects, newest first; reads no more per object than it returns. */
  const about = (projectId: ProjectId, agentId: AgentId, objectIds: ReadonlyArray<string>) =>
    sql<RejectedSuggestion>`
      with newest as (
        select distinct one.rejected_at, one.task_id from unnest(${objectIds}::uuid[]) as about(id), lateral (
          select rejected_at, task_id from kb.rejections where agent_id = ${agentId} and object_id = about.id
          order by rejected_at desc, task_id desc limit ${reviewLimits.rejectionsHeard}
        ) one order by rejected_at desc, task_id desc limit ${reviewLimits.rejectionsHeard}
      )
      select number::int as number, title, payload -> 'suggestedChanges' as change, resolved_by, resolved_at, resolution_note as reason, untrusted
      from newest join kb.tasks task on task.id = newest.task_id and task.project_id = ${projectId}
      order by newest.rejected_at desc, task.id desc`

  return { keep, about }
})
