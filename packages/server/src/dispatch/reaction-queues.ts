/**
 * How the agents of a project keep up with the graph: each agent that reacts, with what waits for it.
 *
 * Flow: graph → outbox → **dispatch** → run → tool → task
 *
 * One statement for a page of agents. What is counted is found by the partial
 * indexes of what is not done yet, and no more than a bound of it, so the cost
 * follows the agents of the page and not what they have done.
 */
import { countedMaxEntries, type ReactionQueue } from "@tropism/api/processing-api"
import { Context, Effect, Layer } from "effect"
import { SqlClient } from "effect/sql"
import { lastId, orDie, ProjectTransaction } from "../database/database.ts"

export class ReactionQueues extends Context.Service<
  ReactionQueues,
  {
    /** The agents that react, the newest first, before an id. */
    readonly list: (
      before: string | undefined,
      limit: number
    ) => Effect.Effect<ReadonlyArray<ReactionQueue>, never, ProjectTransaction>
  }
>()("@tropism/server/dispatch/ReactionQueues") {
  static readonly layer = Layer.effect(
    ReactionQueues,
    Effect.gen(function* () {
      const sql = yield* SqlClient.SqlClient
      const list = Effect.fn("ReactionQueues.list")(function* (before: string | undefined, limit: number) {
        const { projectId } = yield* ProjectTransaction
        const waitingEntries = (parked: boolean) => sql`
          select created_at from kb.agent_processing_log
          where project_id = ${projectId} and agent_id = agent.id and status = 'pending' and run_id is null
            and ${parked ? sql`parked` : sql`not parked`} limit ${countedMaxEntries}`
        const rows = yield* sql<QueueRow>`
          select agent.id, agent.name as agent_name, agent.enabled, agent.disabled_reason,
            coalesce(agent.reaction_config -> 'objectTypes', '[]') as object_types,
            least(waits.count + runs.queued, ${countedMaxEntries}::int) as waiting, least(waits.since, runs.since) as waiting_since,
            runs.running as working, dead.count as dead_letters,
            newest.status as newest_status, newest.reason as newest_reason, newest.created_at as newest_at
          from (
            select * from kb.agents
            where project_id = ${projectId} and deleted_at is null and trigger_type = 'reaction' and id < ${before ?? lastId}::uuid
            order by id desc limit ${limit}
          ) agent
          cross join lateral (
            select count(*)::int as count, min(created_at) as since
            from ((${waitingEntries(false)}) union all (${waitingEntries(true)})) waiting
          ) waits
          cross join lateral (
            select (count(*) filter (where live.status = 'queued'))::int as queued, (count(*) filter (where live.status = 'running'))::int as running,
              min(live.created_at) filter (where live.status = 'queued') as since
            from (
              select status, created_at from kb.agent_runs
              where agent_id = agent.id and status in ('queued', 'running') and trigger ->> 'type' in ('reaction', 'mcpEvent') limit ${countedMaxEntries}
            ) live
          ) runs
          cross join lateral (
            select count(*)::int as count from (
              select from kb.agent_processing_log where agent_id = agent.id and dead_lettered_at is not null limit ${countedMaxEntries}
            ) letter
          ) dead
          left join lateral (
            select status, reason, created_at from kb.agent_processing_log where agent_id = agent.id order by id desc limit 1
          ) newest on true
          order by agent.id desc`
        return rows.map(toQueue)
      }, orDie)
      return ReactionQueues.of({ list })
    })
  )
}

type Newest = NonNullable<ReactionQueue["newest"]>

interface QueueRow extends Omit<ReactionQueue, "waitingSince" | "newest"> {
  readonly waitingSince: Date | null
  readonly newestStatus: Newest["status"] | null
  readonly newestReason: string | null
  readonly newestAt: Date | null
}

const toQueue = ({
  newestAt,
  newestReason,
  newestStatus,
  waitingSince,
  ...row
}: QueueRow): ReactionQueue => ({
  ...row,
  waitingSince: waitingSince?.toISOString() ?? null,
  newest:
    newestStatus === null || newestAt === null
      ? null
      : { status: newestStatus, reason: newestReason, createdAt: newestAt.toISOString() }
})
