/**
 * What agents have earned: read by people, asked for by the gate, ended by either.
 *
 * Flow: graph → outbox → dispatch → run → tool → **task**
 *
 * How it is earned stands in `earning.ts`, how it ends in `demoting.ts`. Whether
 * a promotion has an effect is judged at the write, by the agents as they are.
 */
import {
  acceptanceRate,
  type Autonomy as Earned,
  type Promotion,
  reviewsIn,
  type ReviewRecord
} from "@tropism/domain/autonomy"
import type { ChangeKind, Powers } from "@tropism/domain/capability"
import type { AgentId, GraphEventId, PromotionId, RunId, UserId } from "@tropism/domain/ids"
import { Context, Effect, Layer } from "effect"
import { SqlClient } from "effect/sql"
import { onlyRow, orDie, ProjectTransaction } from "../database/database.ts"
import { inTurn } from "../database/turns.ts"
import { taskLimits } from "./task-limits.ts"
import { makeDemoting } from "./demoting.ts"

type InProject<A> = Effect.Effect<A, never, ProjectTransaction>

export class Autonomy extends Context.Service<
  Autonomy,
  {
    /** What a version of an agent, or its present one, has earned; undefined when there is no such version. */
    readonly of: (agentId: AgentId, version: number | undefined) => InProject<Earned | undefined>
    /**
     * The promotion by which a run may make changes of this kind without asking, held until the transaction ends.
     *
     * **Details** Each hybrid agent among the run's own and those above it must have earned it, at the version that its run
     * pins. Of several promotions it answers the one of the run's own agent, or else the nearest above.
     */
    readonly trusted: (
      runId: RunId,
      operation: ChangeKind,
      objectType: string
    ) => InProject<PromotionId | undefined>
    /** Counts changes of agents that a person has undone, and ends the promotions of their kinds. */
    readonly reverted: (eventIds: ReadonlyArray<GraphEventId>, by: UserId, note: string) => InProject<void>
    /** Takes a promotion of an agent back; undefined when there is none, false when it has ended. */
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
      const demoting = yield* makeDemoting

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

/** Why what was earned has no effect at present. */
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
