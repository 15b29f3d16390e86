/**
 * Reports the status of a project's agents: the latest runs, the next scheduled run and the cost of each.
 *
 * One statement for a page of agents; each part uses an index and reads only what is shown, so the cost follows the page.
 */
import { type AgentHealth, agentHealthRuns } from "@tropism/api/agents-api"
import { countedMaxEntries, type ReactionQueue } from "@tropism/api/processing-api"
import { acceptanceRate, type Reviews, reviewsIn } from "@tropism/domain/autonomy"
import { microsPerDollar } from "@tropism/domain/chain"
import { healthBounds } from "@tropism/domain/health-words"
import type { AgentId } from "@tropism/domain/ids"
import { isAllowedTool } from "@tropism/domain/mcp-server"
import type { ModelConfig } from "@tropism/domain/model-config"
import type { VitalSigns } from "@tropism/domain/vital-signs"
import { Context, Effect, Layer } from "effect"
import { SqlClient } from "effect/sql"
import { lastId, orDie, ProjectTransaction } from "../database/database.ts"
import { Models } from "../models/models.ts"
import { KillSwitches } from "../runs/kill-switches.ts"
import { outageSentence } from "../runs/provider-waits.ts"
import { restReason } from "../tenancy/restore.ts"

export class AgentHealths extends Context.Service<
  AgentHealths,
  {
    /** Returns the agents, or one of them, newest first, before an id. */
    readonly list: (
      before: string | undefined,
      limit: number,
      agentId?: AgentId
    ) => Effect.Effect<ReadonlyArray<AgentHealth>, never, ProjectTransaction>
  }
>()("@tropism/server/dispatch/AgentHealths") {
  static readonly layer = Layer.effect(
    AgentHealths,
    Effect.gen(function* () {
      const sql = yield* SqlClient.SqlClient
      const models = yield* Models

      /** A recorded run is looked up only when it is replayed, so its absence is not known here. */
      const missingOf = ({ agentName, model }: HealthRow) =>
        model?.provider === "replay"
          ? Effect.succeed(null)
          : Effect.match(models.resolve({ agentName, model }), {
              onFailure: ({ message }) => message,
              onSuccess: () => null
            })

      const list = Effect.fn("AgentHealths.list")(function* (
        before: string | undefined,
        limit: number,
        agentId?: AgentId
      ) {
        const { projectId } = yield* ProjectTransaction
        const rows = yield* sql<HealthRow>`
          select agent.id, agent.name as agent_name, agent.enabled, agent.disabled_reason, agent.trigger_type,
            agent.model, schedule.next_fire_at, ran.latest, spent.micros, reviews.*
          from (
            select * from kb.agents where project_id = ${projectId} and deleted_at is null and id < ${before ?? lastId}::uuid
              and (${agentId ?? null}::uuid is null or id = ${agentId ?? null}::uuid)
            order by id desc limit ${limit}
          ) agent
          left join kb.agent_schedules schedule on schedule.agent_id = agent.id
          cross join lateral (
            select coalesce(jsonb_agg(jsonb_build_object('id', run.id, 'status', run.status, 'createdAt', run.created_at) order by run.id desc), '[]') as latest
            from (
              select id, status, created_at from kb.agent_runs where agent_id = agent.id and backtest_id is null
              order by id desc limit ${agentHealthRuns}
            ) run
          ) ran
          cross join lateral (
            select coalesce(sum(cost_micros), 0)::bigint as micros from kb.budgets
            where project_id = ${projectId} and scope = 'agent' and scope_id = agent.id
              and period > to_char((now() at time zone 'UTC')::date - ${costDays}::int, 'YYYY-MM-DD') || '~'
          ) spent
          cross join lateral (
            select coalesce(sum(accepted), 0)::integer as accepted, coalesce(sum(edited), 0)::integer as edited,
              coalesce(sum(rejected), 0)::integer as rejected
            from kb.review_records where agent_id = agent.id and agent_version = agent.version
          ) reviews
          order by agent.id desc`
        return yield* Effect.forEach(rows, (row) =>
          Effect.map(missingOf(row), (missing) => toHealth(row, missing))
        )
      }, orDie)
      return AgentHealths.of({ list })
    })
  )
}

const costDays = 7

interface HealthRow
  extends Omit<AgentHealth, "nextFireAt" | "weekCostUsd" | "modelMissing" | "acceptance">, Reviews {
  readonly model: ModelConfig | null
  readonly nextFireAt: Date | null
  readonly micros: bigint
}

const toHealth = (row: HealthRow, modelMissing: string | null): AgentHealth => ({
  id: row.id,
  agentName: row.agentName,
  enabled: row.enabled,
  disabledReason: row.disabledReason,
  triggerType: row.triggerType,
  modelMissing,
  nextFireAt: row.nextFireAt?.toISOString() ?? null,
  latest: row.latest.map((run) => ({ ...run, createdAt: new Date(run.createdAt).toISOString() })),
  weekCostUsd: Number(row.micros) / microsPerDollar,
  acceptance: { decided: reviewsIn(row), rate: acceptanceRate(row) }
})

// Reports for each reacting agent what waits for it.
//
// One statement for a page of agents. Counts use partial indexes of unfinished work and stop at a limit, so the cost follows the page and
// not the agents' history.

export class ReactionQueues extends Context.Service<
  ReactionQueues,
  {
    /** Returns the agents that react, newest first, before an id. */
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

// Reads the vital signs by which a project's health is judged.
//
// Everything is counted up to a limit through the indexes that the work itself uses, so the cost is nearly constant. Nothing is judged here
// (`domain/vital-signs.ts`).

const { countedMax, deadLetterSeconds, failures, modelsMax, namedMax } = healthBounds

/** Reads them in the project's transaction; the caller adds the server's own state. */
export const readVitalSigns = Effect.fn("readVitalSigns")(function* () {
  const switches = yield* KillSwitches
  const stopped = (yield* switches.find) ?? null
  const counts = yield* readCounts
  const agents = yield* readAgents
  const voiceless = yield* readVoiceless
  const servers = yield* readServers
  const outages = yield* readOutages
  const crowded = yield* readCrowded
  return { stopped, ...counts, ...agents, voiceless, outages, crowded, ...servers } satisfies Omit<
    VitalSigns,
    "serverFault"
  >
})

/** Returns the breakers that runs of the project wait for. */
const readOutages = Effect.gen(function* () {
  const sql = yield* SqlClient.SqlClient
  const { projectId } = yield* ProjectTransaction
  const rows = yield* sql<OutageRow>`
    select outage.route, outage.reason, outage.since, outage.next_try_at, extract(epoch from now() - outage.since)::float8 as seconds,
      (select count(*)::int from (select from kb.agent_runs
        where project_id = ${projectId} and status = 'queued' and waits_for = outage.route limit ${countedMax}) one) as runs
    from kb.provider_outages_here outage order by outage.since, outage.route limit ${namedMax}`
  return rows.map(({ nextTryAt, reason, route, since, ...row }) => ({
    ...row,
    // The provider's address is for the operator only.
    models: route.replaceAll(/ at \S+(?=, model )/g, ""),
    failure: outageSentence(reason),
    since: since.toISOString(),
    nextTryAt: nextTryAt.toISOString()
  }))
}).pipe(orDie)

interface OutageRow {
  readonly route: string
  readonly reason: string
  readonly since: Date
  readonly nextTryAt: Date
  readonly seconds: number
  readonly runs: number
}

/** Returns the models for which requests of the project queue on this server. */
const readCrowded = Effect.gen(function* () {
  const { lanes } = yield* Models
  const { projectId } = yield* ProjectTransaction
  return lanes()
    .flatMap(({ inFlight, limit, most, name, provider, waitingOf }) => {
      const waiting = waitingOf.get(projectId) ?? 0
      return waiting === 0 ? [] : [{ model: `${provider}:${name}`, inFlight, waiting, limit, most }]
    })
    .slice(0, namedMax)
})

const readCounts = Effect.gen(function* () {
  const sql = yield* SqlClient.SqlClient
  const { projectId } = yield* ProjectTransaction
  const [row] = yield* sql<CountRow>`
    select untold.*, queued.*, orphaned.*, overdue.*,
      (select count(*)::int from (select 1 from kb.agent_processing_log
        where project_id = ${projectId} and status = 'pending' and run_id is null limit ${countedMax}) one) as waiting_entries,
      (select count(*)::int from (select 1 from kb.agent_runs
        where project_id = ${projectId} and status = 'running' limit ${countedMax}) one) as running,
      (select count(*)::int from (select 1 from kb.agent_runs where project_id = ${projectId} and status = 'paused'
        and pause_reason in ('stepLimit', 'timeout', 'budget') limit ${countedMax}) one) as resting,
      (select count(*)::int from (select 1 from kb.tasks where project_id = ${projectId} and owner = '' and status = 'pending'
        and deleted_at is null limit ${countedMax}) one) as pending_tasks,
      (select count(*)::int from (select 1 from kb.agents
        where project_id = ${projectId} and enabled and deleted_at is null limit ${countedMax}) one) as enabled_agents,
      (select count(*)::int from (select 1 from kb.agents where project_id = ${projectId} and deleted_at is null
        and not enabled and disabled_reason <> ${restReason} limit ${countedMax}) one) as disabled_count,
      (select count(*)::int from kb.mcp_servers where project_id = ${projectId} and enabled) as mcp_servers
    from (select count(*)::int as untold_count, coalesce(extract(epoch from now() - min(created_at)), 0)::float8 as untold_oldest
        from (select created_at from kb.graph_events
          where project_id = ${projectId} and dispatched_at is null order by seq limit ${countedMax}) one) untold,
      (select count(*)::int as queued_count,
          coalesce(extract(epoch from now() - min(queued_at) filter (where backtest_id is null)), 0)::float8 as queued_oldest
        from (select queued_at, backtest_id from kb.agent_runs
          where project_id = ${projectId} and status = 'queued' and waits_for is null order by id limit ${countedMax}) one) queued,
      (select count(*)::int as orphaned_count, coalesce(extract(epoch from now() - min(lease_expires_at)), 0)::float8 as orphaned_oldest
        from (select lease_expires_at from kb.agent_runs where project_id = ${projectId} and status = 'running'
          and lease_expires_at < now() limit ${countedMax}) one) orphaned,
      (select count(*)::int as overdue_count, coalesce(extract(epoch from now() - min(next_fire_at)), 0)::float8 as overdue_oldest
        from (select next_fire_at from kb.agent_schedules
          where project_id = ${projectId} and next_fire_at < now() order by next_fire_at limit ${countedMax}) one) overdue`
  if (row === undefined) return yield* Effect.die(new Error("The database told no signs"))
  return {
    untold: { count: row.untoldCount, oldestSeconds: row.untoldOldest },
    queued: { count: row.queuedCount, oldestSeconds: row.queuedOldest },
    orphaned: { count: row.orphanedCount, oldestSeconds: row.orphanedOldest },
    overdue: { count: row.overdueCount, oldestSeconds: row.overdueOldest },
    waitingEntries: row.waitingEntries,
    running: row.running,
    resting: row.resting,
    pendingTasks: row.pendingTasks,
    enabledAgents: row.enabledAgents,
    disabledCount: row.disabledCount,
    mcpServers: row.mcpServers
  }
}).pipe(orDie)

type CountRow = Readonly<
  Record<
    | `${"untold" | "queued" | "orphaned" | "overdue"}${"Count" | "Oldest"}`
    | "waitingEntries"
    | "running"
    | "resting"
    | "pendingTasks"
    | "enabledAgents"
    | "disabledCount"
    | "mcpServers",
    number
  >
>

const readAgents = Effect.gen(function* () {
  const sql = yield* SqlClient.SqlClient
  const { projectId } = yield* ProjectTransaction
  const disabled = yield* sql<VitalSigns["disabled"][number]>`
    select id, name, disabled_reason as reason from kb.agents
    where project_id = ${projectId} and deleted_at is null and not enabled and disabled_reason <> ${restReason}
    order by updated_at desc limit ${namedMax}`
  const atRest = yield* sql<VitalSigns["atRest"][number]>`
    select id, name from kb.agents
    where project_id = ${projectId} and deleted_at is null and not enabled and disabled_reason = ${restReason}
    order by name limit ${namedMax}`
  const failing = yield* sql<VitalSigns["failing"][number]>`
    select id, name, consecutive_failures as failures, disable_after_failures as disabled_after from kb.agents
    where project_id = ${projectId} and deleted_at is null and enabled and consecutive_failures >= ${failures}
    order by consecutive_failures desc, id limit ${namedMax}`
  const deadLetters = yield* sql<VitalSigns["deadLetters"][number]>`
    select agent.id, agent.name, dead.count from kb.agents agent
    cross join lateral (
      select count(*)::int as count from (
        select dead_lettered_at from kb.agent_processing_log entry
        where entry.agent_id = agent.id and entry.dead_lettered_at is not null order by entry.id desc limit ${countedMax}
      ) newest where dead_lettered_at > now() - make_interval(secs => ${deadLetterSeconds})
    ) dead
    where agent.project_id = ${projectId} and agent.deleted_at is null and dead.count > 0
    order by dead.count desc, agent.id limit ${namedMax}`
  return { disabled, atRest, failing, deadLetters }
}).pipe(orDie)

/** Returns the agents whose runs would fail at once, by the same rule; makes no model request. */
const readVoiceless = Effect.gen(function* () {
  const sql = yield* SqlClient.SqlClient
  const { resolve } = yield* Models
  const { projectId } = yield* ProjectTransaction
  const rows = yield* sql<{ id: string; name: string; model: ModelConfig | null }>`
    select id, name, model from kb.agents
    where project_id = ${projectId} and deleted_at is null and enabled
      and (model is null or model ->> 'provider' not in ('scripted', 'replay'))
    order by id limit ${modelsMax}`
  const found = yield* Effect.forEach(rows, ({ id, model, name }) =>
    Effect.match(resolve({ agentName: name, model }), {
      onSuccess: () => [],
      onFailure: ({ message }) => [{ id, name, why: message }]
    })
  )
  return found.flat()
}).pipe(orDie)

const readServers = Effect.gen(function* () {
  const sql = yield* SqlClient.SqlClient
  const { projectId } = yield* ProjectTransaction
  // A server that delivers events is reachable, whatever the last attempt at its tools returned.
  const silentServers = yield* sql<VitalSigns["silentServers"][number]>`
    select server.id, server.name, coalesce(source.last_fault, server.last_error) as error from kb.mcp_servers server
    left join lateral (
      select max(last_fault) filter (where failures > 0) as last_fault,
        bool_or(failures = 0 and polled_at > server.updated_at) as is_heard
      from kb.mcp_event_sources where project_id = server.project_id and server_name = server.name and due_at is not null
    ) source on true
    where server.project_id = ${projectId} and server.enabled
      and (source.last_fault is not null or (server.last_error is not null and source.is_heard is not true))
    order by server.id limit ${namedMax}`
  const pinned = yield* sql<{
    id: string
    name: string
    allowedTools: ReadonlyArray<string>
    tools: ReadonlyArray<string>
  }>`
    select id, name, config -> 'allowedTools' as allowed_tools,
      jsonb_path_query_array(tools, '$[*] ? (@.changedAt != null).name') as tools
    from kb.mcp_servers
    where project_id = ${projectId} and enabled and tools @? '$[*] ? (@.changedAt != null)' order by id limit ${namedMax}`
  const changedServers = pinned
    .map(({ allowedTools, id, name, tools }) => ({
      id,
      name,
      tools: tools.filter((tool) => isAllowedTool({ allowedTools }, tool))
    }))
    .filter(({ tools }) => tools.length > 0)
  return { silentServers, changedServers }
}).pipe(orDie)
