/**
 * Counts an agent's live and recent runs and computes how many it may begin now.
 *
 * The queries use partial indexes of live and recent runs and count only up to the limit that matters, so their cost does not grow with the
 * agent's history. A count is reliable only while the caller holds the agent's lock.
 */
import type { AgentId } from "@tropism/domain/ids"
import type { ReactionConfig } from "@tropism/domain/reaction"
import { type Wait, waitSentences, firstDueMs, firstWait, standsInLine } from "@tropism/domain/waiting"
import { Effect } from "effect"
import { SqlClient } from "effect/sql"
import { orDie, ProjectTransaction } from "../database/database.ts"
import { dispatchLimits } from "../limits.ts"
import { Admission } from "../runs/admission.ts"
import { isStopped } from "../runs/kill-switches.ts"
import type { NewEntry } from "../runs/processing-log.ts"

/** An agent's current state, with its live runs. */
export interface Standing {
  readonly agentId: AgentId
  readonly agentVersion: number
  /** Null for an agent that never reacted. */
  readonly config: ReactionConfig | null
  /** Whether the agent is enabled, not deleted, and reacts to events. */
  readonly isActive: boolean
  readonly enabledAt: Date | null
  /** Whether a kill switch is on. */
  readonly isStopped: boolean
  readonly maxPendingRuns: number
  /** Queued and running runs, whatever triggered them; counted only up to the limit that matters. */
  readonly liveRuns: number
  readonly liveReactions: number
  /** Event runs that began within the rate limit's window or have yet to begin, as if now; and the time of the first. */
  readonly begunRuns: number
  readonly begunFirstAt: Date | null
  readonly hasWaiting: boolean
  /** The reason of the entry that is due first. */
  readonly firstReason: string | null
  readonly now: Date
}

/**
 * Locks the waiting work of agents for this transaction, in the order of their ids, and returns the locked agents; with `"pass"` it skips
 * those that another transaction holds.
 *
 * **Details** One lock separates concurrent releasers. The other is a shared lock of the agent's row: a transaction that changes the agent
 * or counts its runs waits for it, while a writing run of the agent, which shares the lock, does not.
 */
export const lockAgents = Effect.fn("lockAgents")(function* (
  ids: ReadonlyArray<AgentId>,
  others: "wait" | "pass"
) {
  if (ids.length === 0) return []
  const sql = yield* SqlClient.SqlClient
  const { projectId } = yield* ProjectTransaction
  const ordered = sql`(select id from unnest(${ids}::uuid[]) as id order by id) as wanted`
  const key = sql`hashtextextended('tropism.release.' || wanted.id, 0)`
  const held =
    others === "pass"
      ? yield* sql<{ id: AgentId }>`select wanted.id from ${ordered} where pg_try_advisory_xact_lock(${key})`
      : yield* sql<{ id: AgentId }>`select wanted.id, pg_advisory_xact_lock(${key}) from ${ordered}`
  const rows = yield* sql<{ id: AgentId }>`
    select id from kb.agents where project_id = ${projectId} and id = any(${held.map(({ id }) => id)}::uuid[])
    order by id for share ${others === "pass" ? sql`skip locked` : sql``}`
  return rows.map((row) => row.id)
}, orDie)

/** Returns the current state of each agent. */
export const standingsOf = Effect.fn("standingsOf")(function* (ids: ReadonlyArray<AgentId>) {
  if (ids.length === 0) return []
  const sql = yield* SqlClient.SqlClient
  const { projectId } = yield* ProjectTransaction
  return yield* sql<Standing>`
    select agent.id as agent_id, agent.version as agent_version, agent.reaction_config as config, agent.enabled_at, agent.max_pending_runs, ${isStopped(sql)} as is_stopped,
      agent.enabled and agent.deleted_at is null and agent.trigger_type = 'reaction' and agent.reaction_config is not null as is_active,
      live.runs as live_runs, live.reactions as live_reactions, begun.runs as begun_runs, begun.first_at as begun_first_at,
      first.id is not null as has_waiting, first.reason as first_reason, now() as now
    from kb.agents agent
    left join lateral (
      select entry.id, entry.reason from kb.agent_processing_log entry
      where entry.project_id = ${projectId} and entry.agent_id = agent.id
        and entry.status = 'pending' and entry.run_id is null and not entry.parked
      order by coalesce(entry.due_at, entry.created_at), entry.id limit 1
    ) first on true
    cross join lateral (
      select count(*)::int as runs, (count(*) filter (where type in ('reaction', 'mcpEvent')))::int as reactions from (
        select run.trigger ->> 'type' as type from kb.agent_runs run
        where run.agent_id = agent.id and run.status in ('queued', 'running') and run.backtest_id is null
        limit greatest(agent.max_pending_runs, coalesce((agent.reaction_config ->> 'maxConcurrency')::int, 0))
      ) run
    ) live
    cross join lateral (
      select count(*)::int as runs, min(run.began_at) as first_at from (
        (select now() as began_at from kb.agent_runs run
        where run.agent_id = agent.id and run.status = 'queued' and run.started_at is null and run.trigger ->> 'type' in ('reaction', 'mcpEvent') and run.backtest_id is null
        limit (agent.reaction_config #>> '{rateLimit,maxRuns}')::int)
        union all
        (select run.started_at from kb.agent_runs run
        where run.agent_id = agent.id and run.trigger ->> 'type' in ('reaction', 'mcpEvent') and run.backtest_id is null
          and run.started_at > now() - make_interval(secs => (agent.reaction_config #>> '{rateLimit,perSeconds}')::int)
        order by run.started_at desc limit (agent.reaction_config #>> '{rateLimit,maxRuns}')::int)
      ) run
      where agent.reaction_config #> '{rateLimit,maxRuns}' is not null
    ) begun
    where agent.project_id = ${projectId} and agent.id = any(${ids}::uuid[])`
}, orDie)

/** How many runs may begin now, and what blocks the others. */
export interface Allowance {
  readonly runs: number
  readonly wait: Wait
  /** When a run may begin again, if that depends on time alone. */
  readonly opensAtMs: number | null
}

/** Returns what an agent's limits allow to begin. */
export const allowanceOf = (standing: Standing): Allowance => {
  const { config, liveRuns, liveReactions, maxPendingRuns, begunRuns, begunFirstAt } = standing
  const limits: Array<Allowance> = [
    { runs: pendingPlaces(maxPendingRuns, liveRuns), wait: "pendingRuns", opensAtMs: null },
    { runs: dispatchLimits.releaseRuns, wait: "turn", opensAtMs: null }
  ]
  if (standing.isStopped) limits.push({ runs: 0, wait: "stopped", opensAtMs: null })
  if (config !== null && config.maxConcurrency !== null)
    limits.push({ runs: config.maxConcurrency - liveReactions, wait: "concurrency", opensAtMs: null })
  if (config !== null && config.rateLimit !== null)
    limits.push({
      runs: config.rateLimit.maxRuns - begunRuns,
      wait: "rateLimit",
      opensAtMs: begunFirstAt && begunFirstAt.getTime() + config.rateLimit.perSeconds * 1_000
    })
  const least = limits.reduce((a, b) => (b.runs < a.runs ? b : a))
  return { ...least, runs: Math.max(0, least.runs) }
}

/** Whether waiting work needs an action: a run may begin, or the first entry does not state yet why none may. */
export const mayMove = (standing: Standing): boolean => {
  const { runs, wait } = allowanceOf(standing)
  return runs > 0 || standing.firstReason !== waitSentences[wait]
}

/** Free places below the cap; a long queue is filled in portions, since each portion costs a transaction. */
const pendingPlaces = (maxPendingRuns: number, liveRuns: number): number => {
  const free = maxPendingRuns - liveRuns
  return free >= Math.max(1, Math.min(dispatchLimits.releaseRuns, Math.floor(maxPendingRuns / 10))) ? free : 0
}

// Counts the runs that a person's request may begin now, with the limit that blocks the others.
//
// This is for requests about events: their runs count in `maxConcurrency` and `rateLimit`. The agent's row is locked from the first count
// on, so that no other transaction takes the same place; it also excludes the releaser's lock.

/** How many runs may begin now (zero or less for none), and what blocks the others. */
export interface FreePlaces {
  readonly count: number
  readonly wait: Wait
}

export const makeFreePlaces = Effect.gen(function* () {
  const sql = yield* SqlClient.SqlClient
  const admission = yield* Admission

  /** Returns at least one place below `maxPendingRuns`, or fails; the rule's limits apply to an agent that reacts. */
  const placesOf = Effect.fn("placesOf")(function* (agentId: AgentId) {
    const places: Array<FreePlaces> = [{ count: yield* admission.places(agentId), wait: "pendingRuns" }]
    const [standing] = yield* Effect.provideService(standingsOf([agentId]), SqlClient.SqlClient, sql)
    const config = standing?.isActive === true ? standing.config : null
    if (standing && config && config.maxConcurrency !== null)
      places.push({ count: config.maxConcurrency - standing.liveReactions, wait: "concurrency" })
    if (standing && config && config.rateLimit !== null)
      places.push({ count: config.rateLimit.maxRuns - standing.begunRuns, wait: "rateLimit" })
    return places.reduce((a, b) => (b.count <= a.count ? b : a))
  })

  return { placesOf }
})

// Computes until when, and why, a new entry waits.
//
// What may begin at once is released at the end of the same transaction.

/** Returns the fields of a waiting entry that follow from its agent's rule; `isFirst` when the agent has no other waiting entry. */
export const beginningToWait = (
  config: ReactionConfig,
  standing: Standing,
  isFirst: boolean
): Pick<NewEntry, "runId" | "exclusive" | "dueAt" | "reason" | "standsInLine"> => {
  const dueAtMs = firstDueMs(config, standing.now.getTime(), isFirst)
  return {
    runId: null,
    exclusive: false,
    dueAt: dueAtMs === null ? null : new Date(dueAtMs).toISOString(),
    reason: waitSentences[firstReasonOf(config, standing)],
    standsInLine: standsInLine(config) && config.batchSize === 1
  }
}

/** The entry waits for others to batch with, otherwise for the limit that blocks the agent now. */
const firstReasonOf = (config: ReactionConfig, standing: Standing): Wait => {
  const first = firstWait(config)
  const { runs, wait } = allowanceOf(standing)
  return first === "debounce" || first === "batch" || runs > 0 ? first : wait
}
