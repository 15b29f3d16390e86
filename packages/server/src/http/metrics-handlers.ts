/**
 * Figures for whoever watches: what this program has done, and what waits in the database.
 *
 * Flow: **http** → graph → outbox → dispatch → run → tool → task
 *
 * A database that does not answer in time is told as such, and what only it
 * knows is not told: nobody takes an old figure for a new one.
 */
import { Api } from "@tropism/api/api"
import { CurrentPrincipal } from "@tropism/api/authorization"
import { Forbidden } from "@tropism/api/problems"
import type { PauseReason } from "@tropism/domain/run"
import { Effect, Metric, Option } from "effect"
import { HttpApiBuilder } from "effect/http-api"
import { PrometheusMetrics } from "effect/observability"
import { isBrokenByAway } from "../database/database-away.ts"
import { type Gauges, readGauges } from "../database/gauges.ts"
import { poolLimits } from "../database/pool-limits.ts"
import { Models } from "../model/models.ts"
import { countTakenOver, tellModelRequests } from "../telemetry/figures.ts"
import { tellProcess } from "../telemetry/process-figures.ts"
import { LiveLogs } from "./live-logs.ts"

export const metricsHandlers = HttpApiBuilder.group(Api, "metrics", (handlers) =>
  handlers.handle(
    "scrape",
    Effect.fn("http.metrics.scrape")(function* () {
      const { projectIds } = yield* CurrentPrincipal
      if (projectIds !== null)
        return yield* new Forbidden({ detail: "This needs a token that reaches every project of the server" })
      yield* tellFigures
      return yield* PrometheusMetrics.format()
    })
  )
)

/** Brings up to date what is not counted as it happens; waits for the database no longer than `/ready` does. */
export const tellFigures = Effect.gen(function* () {
  const gauges = yield* readGauges().pipe(
    Effect.timeoutOption(poolLimits.pingTimeoutMs),
    Effect.catchCause((cause) =>
      isBrokenByAway(cause) ? Effect.succeed(Option.none<Gauges>()) : Effect.failCause(cause)
    )
  )
  yield* Metric.update(databaseUp, Option.isSome(gauges) ? 1 : 0)
  yield* Effect.forEach(gaugesOf(Option.getOrUndefined(gauges)), ([metric, value]) =>
    value === undefined ? Metric.remove(metric) : Metric.update(metric, value)
  )
  yield* countTakenOver(0)
  yield* Metric.update(subscribers, (yield* LiveLogs).watching())
  const { concurrency, lanes } = yield* Models
  yield* tellModelRequests(lanes(), concurrency)
  yield* tellProcess
})

const gauge = (name: string, description: string, attributes: Record<string, string> = {}) =>
  Metric.withAttributes(Metric.gauge(`tropism_${name}`, { description }), attributes)

const databaseUp = gauge(
  "database_up",
  "1 while PostgreSQL tells this server in time what it is asked, else 0, and then nothing else that it would tell."
)
const subscribers = gauge("live_subscribers", "Streams of events that clients of this server have open.")

const runs = "Runs that have not ended, by their state."
const oldestQueued =
  "How long that one of them waits that was queued first, without backtests' and what kill switches hold."
const leases = "Runs at work on all servers, by whether their worker is alive."
const waiting = "Runs that rest, or wait for their provider, by why."
const overdue = "How long that schedule is due that is due for the longest and that no kill switch holds."
const overdueSource =
  "How long that source of foreign events is due that is due for the longest, in a project of which nobody asks any and no kill switch holds any."
const switches = "Kill switches that are on."
const connections = "Connections of all servers to the database."

/** What the database tells, figure by figure; without values where it tells nothing. */
const gaugesOf = (seen: Gauges | undefined) =>
  [
    [gauge("live_runs", runs, { status: "queued" }), seen?.queuedRuns],
    [gauge("live_runs", runs, { status: "running" }), seen && seen.liveLeases + seen.lapsedLeases],
    [gauge("live_runs", runs, { status: "paused" }), seen?.pausedRuns],
    [gauge("queued_runs", "Runs that wait for a worker."), seen?.queuedRuns],
    [gauge("oldest_queued_run_seconds", oldestQueued), seen?.oldestQueuedSeconds],
    [gauge("leases", leases, { state: "live" }), seen?.liveLeases],
    [gauge("leases", leases, { state: "lapsed" }), seen?.lapsedLeases],
    ...restingRuns(seen),
    [gauge("waiting_runs", waiting, { reason: "provider" }), seen?.providerRuns],
    [gauge("provider_outages", "Circuit breakers of providers that are open."), seen?.openOutages],
    [
      gauge(
        "oldest_provider_outage_seconds",
        "How long that provider is away which is away for the longest."
      ),
      seen?.oldestOutageSeconds
    ],
    [gauge("overdue_schedule_seconds", overdue), seen?.overdueScheduleSeconds],
    [gauge("overdue_source_seconds", overdueSource), seen?.overdueSourceSeconds],
    [
      gauge("disabled_agents", "Agents that disabled themselves after failures in a row."),
      seen?.disabledAgents
    ],
    [
      gauge("suspended_subscriptions", "Event subscriptions that are told nothing until they are refreshed."),
      seen?.suspendedSubscriptions
    ],
    [gauge("kill_switches", switches, { scope: "project" }), seen?.projectSwitches],
    [gauge("kill_switches", switches, { scope: "server" }), seen?.serverSwitches],
    [gauge("undispatched_events", "Graph events that no agent was told of yet."), seen?.undispatchedEvents],
    [
      gauge("oldest_undispatched_event_seconds", "How long the oldest of them waits."),
      seen?.oldestEventSeconds
    ],
    [
      gauge("waiting_entries", "Events that an agent will handle and that have no run yet."),
      seen?.waitingEntries
    ],
    [gauge("dead_letters", "Events whose handling failed and that wait for a person."), seen?.deadLetters],
    [gauge("pending_tasks", "Tasks of agents that wait for a person."), seen?.pendingTasks],
    [
      gauge("oldest_processing_entry_seconds", "How long the event that is handled for the longest is."),
      seen?.oldestProcessingSeconds
    ],
    [gauge("database_connections", connections, { state: "active" }), seen?.activeConnections],
    [gauge("database_connections", connections, { state: "idle" }), seen?.idleConnections],
    [gauge("database_bytes", "What the database takes on its disk."), seen?.databaseBytes]
  ] as const

/** Of every reason for which a run may rest how many rest for it. */
const restingRuns = (seen: Gauges | undefined) => {
  const byReason: Record<PauseReason, number | undefined> = {
    question: seen?.questionRuns,
    subAgents: seen?.subAgentRuns,
    stepLimit: seen?.stepLimitRuns,
    timeout: seen?.timeoutRuns,
    budget: seen?.budgetRuns,
    killSwitch: seen?.killSwitchRuns,
    toolResult: seen?.toolResultRuns
  }
  return Object.entries(byReason).map(
    ([reason, runsOfIt]) => [gauge("waiting_runs", waiting, { reason }), runsOfIt] as const
  )
}
