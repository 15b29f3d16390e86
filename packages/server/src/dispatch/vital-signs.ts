/**
 * Reads the signs by which the health of a project is judged.
 *
 * Flow: graph → outbox → **dispatch** → run → tool → task
 *
 * Everything is counted up to a bound through the indexes that the work itself
 * goes by, so a look costs about the same however much there is. Nothing is
 * judged here (`domain/vital-signs.ts`).
 */
import { healthBounds } from "@tropism/domain/health-words"
import { isAllowedTool } from "@tropism/domain/mcp-server"
import type { ModelConfig } from "@tropism/domain/model-config"
import type { VitalSigns } from "@tropism/domain/vital-signs"
import { Effect } from "effect"
import { SqlClient } from "effect/sql"
import { orDie, ProjectTransaction } from "../database/database.ts"
import { restReason } from "../database/restored-rest.ts"
import { Models } from "../model/models.ts"
import { KillSwitches } from "../run/kill-switches.ts"
import { outageSentence } from "../run/provider-waits.ts"

const { countedMax, deadLetterSeconds, failures, modelsMax, namedMax } = healthBounds

/** Reads them in the project's transaction; whether the server itself is whole, its caller knows. */
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

/** The breakers that runs of the project wait for. */
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
    // The address is the operator's.
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

/** The models for which requests of the project wait on this server. */
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

/** Whom a run would fail at once, by the same rule by which it would: nobody is asked anything. */
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
  // A server that tells what happens is there, whatever its tools said when they were tried last.
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
