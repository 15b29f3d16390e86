/**
 * Endpoints for operators: metrics, health, verification, models and denials.
 *
 * **Invariant** Gauges are totals over all projects, so no row of a project is shown to another.
 */
import { Api } from "@tropism/api/api"
import { CurrentPrincipal } from "@tropism/api/authorization"
import { Forbidden, Unauthorized, Unavailable, Conflict } from "@tropism/api/problems"
import { verdictOf } from "@tropism/domain/health"
import type { ProjectId, TaskId } from "@tropism/domain/ids"
import type { Properties } from "@tropism/domain/json"
import type { PauseReason } from "@tropism/domain/run"
import { judge } from "@tropism/domain/vital-signs"
import { Effect, Metric, Option } from "effect"
import { HttpApiBuilder } from "effect/http-api"
import { PrometheusMetrics } from "effect/observability"
import { SqlClient } from "effect/sql"
import { isBrokenByAway } from "../database/connection-errors.ts"
import { orDie, Database } from "../database/database.ts"
import { poolLimits } from "../database/limits.ts"
import { telemetryLimits, runLimits } from "../limits.ts"
import { Models } from "../models/models.ts"
import { readVitalSigns } from "../reactions/health.ts"
import { Verifier } from "../runs/verifier.ts"
import { countTakenOver, updateModelRequestMetrics, updateProcessMetrics } from "../telemetry/metrics.ts"
import { restReason } from "../tenancy/restore.ts"
import { Denials, type Why } from "../tools/denials.ts"
import { reading, currentLoss } from "./access.ts"
import { Readiness } from "./listener.ts"
import { LiveLogs } from "./live-logs.ts"
import { pageById } from "./paging.ts"

interface Gauges {
  readonly queuedRuns: number
  /** Time since the longest-waiting run was queued, without backtests and runs held by kill switches. */
  readonly oldestQueuedSeconds: number
  readonly liveLeases: number
  readonly lapsedLeases: number
  /** Paused runs, whatever they wait for; up to `telemetryLimits.countedMax`. */
  readonly pausedRuns: number
  readonly questionRuns: number
  readonly subAgentRuns: number
  /** Up to `telemetryLimits.countedMax`, as are the next three and the self-disabled agents. */
  readonly stepLimitRuns: number
  readonly timeoutRuns: number
  readonly budgetRuns: number
  readonly killSwitchRuns: number
  /** Runs that wait for a client's tool result. */
  readonly toolResultRuns: number
  /** How long the most overdue schedule has been due; schedules held by kill switches do not count. */
  readonly overdueScheduleSeconds: number
  /** How long the most overdue source has been due, in a project that is not being polled and that no kill switch holds. */
  readonly overdueSourceSeconds: number
  readonly disabledAgents: number
  /** Up to `telemetryLimits.countedMax`. */
  readonly suspendedSubscriptions: number
  /** Active kill switches, of projects and of the server. */
  readonly projectSwitches: number
  readonly serverSwitches: number
  readonly undispatchedEvents: number
  readonly oldestEventSeconds: number
  readonly waitingEntries: number
  /** Up to `telemetryLimits.countedMax`, as are the tasks. */
  readonly deadLetters: number
  readonly pendingTasks: number
  /** How long the oldest entry in processing has been processed. */
  readonly oldestProcessingSeconds: number
  /** Connections of all servers, active or idle. */
  readonly activeConnections: number
  readonly idleConnections: number
  /**
   * Open circuit breakers of providers, the time since the first opened, and the runs that wait for one; up to
   * `telemetryLimits.countedMax`.
   */
  readonly openOutages: number
  readonly oldestOutageSeconds: number
  readonly providerRuns: number
  /** Size of the database on disk, without its write-ahead log. */
  readonly databaseBytes: number
}

type Row = Readonly<Record<keyof Gauges, number | bigint>>

/**
 * Reads the gauges. The state of connections is visible only to their own login: the server's, or the owner's where servers log in as it.
 */
export const readGauges = Effect.fn("readGauges")(function* () {
  const sql = yield* SqlClient.SqlClient
  const [row] = yield* sql<Row>`
    select gauges.*, bounded.*, standing.*, outages.*, kb.paused_runs(${telemetryLimits.countedMax}) as paused_runs, own.active + owners.active as active_connections, own.idle + owners.idle as idle_connections
    from kb.gauges() gauges, kb.bounded_gauges(${telemetryLimits.countedMax}) bounded,
      kb.standing_gauges(${telemetryLimits.countedMax}, ${restReason}) standing, kb.outage_gauges(${telemetryLimits.countedMax}) outages, kb.owners_connections() owners, (
      select count(*) filter (where state = 'active') as active, count(*) filter (where state is distinct from 'active') as idle
      from pg_stat_activity where datname = current_database() and usename = current_user
    ) own`
  if (row === undefined) return yield* Effect.die(new Error("The database told no gauges"))
  const read: Gauges = {
    queuedRuns: Number(row.queuedRuns),
    oldestQueuedSeconds: Number(row.oldestQueuedSeconds),
    liveLeases: Number(row.liveLeases),
    lapsedLeases: Number(row.lapsedLeases),
    pausedRuns: Number(row.pausedRuns),
    questionRuns: Number(row.questionRuns),
    subAgentRuns: Number(row.subAgentRuns),
    stepLimitRuns: Number(row.stepLimitRuns),
    timeoutRuns: Number(row.timeoutRuns),
    budgetRuns: Number(row.budgetRuns),
    killSwitchRuns: Number(row.killSwitchRuns),
    toolResultRuns: Number(row.toolResultRuns),
    overdueScheduleSeconds: Number(row.overdueScheduleSeconds),
    overdueSourceSeconds: Number(row.overdueSourceSeconds),
    disabledAgents: Number(row.disabledAgents),
    suspendedSubscriptions: Number(row.suspendedSubscriptions),
    projectSwitches: Number(row.projectSwitches),
    serverSwitches: Number(row.serverSwitches),
    undispatchedEvents: Number(row.undispatchedEvents),
    oldestEventSeconds: Number(row.oldestEventSeconds),
    waitingEntries: Number(row.waitingEntries),
    deadLetters: Number(row.deadLetters),
    pendingTasks: Number(row.pendingTasks),
    oldestProcessingSeconds: Number(row.oldestProcessingSeconds),
    activeConnections: Number(row.activeConnections),
    idleConnections: Number(row.idleConnections),
    openOutages: Number(row.openOutages),
    oldestOutageSeconds: Number(row.oldestOutageSeconds),
    providerRuns: Number(row.providerRuns),
    databaseBytes: Number(row.databaseBytes)
  }
  return read
}, orDie)

// Metrics for monitoring: counters of this process and gauges of the database.
//
// When the database does not answer in time, that is a metric of its own and its gauges are left out, so no stale value passes for a
// current one.

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

/** Updates the gauges; waits for the database no longer than `/ready` does. */
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
  yield* updateModelRequestMetrics(lanes(), concurrency)
  yield* updateProcessMetrics
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

/** The database's gauges; empty when it did not answer. */
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

/** The number of paused runs, by reason. */
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

// A project's status, from its rows and from this server's loops.

export const healthHandlers = HttpApiBuilder.group(Api, "health", (handlers) =>
  handlers.handle(
    "get",
    Effect.fn("http.health.get")(function* ({ params }) {
      const readiness = yield* Readiness
      const signs = yield* reading(params.projectId, readVitalSigns())
      return verdictOf(judge({ ...signs, serverFault: yield* readiness.fault }))
    })
  )
)

// Verification of a project, for everyone who may read it.

export const verificationHandlers = HttpApiBuilder.group(Api, "verification", (handlers) =>
  handlers.handle(
    "verify",
    Effect.fn("http.verification.verify")(function* ({ params }) {
      const verifier = yield* Verifier
      // Authorization comes first and alone: the snapshot is its own transaction.
      yield* reading(params.projectId, Effect.void)
      const lost = yield* currentLoss(params.projectId)
      return yield* Effect.raceFirst(
        Effect.catchTag(verifier.verify(params.projectId), "VerificationTooLong", () => tooLong),
        Effect.andThen(lost, Effect.fail(lostToken))
      )
    })
  )
)

const tooLong = Effect.fail(
  new Unavailable({
    detail: `The verification took longer than the ${runLimits.verifyMaxMs / 60_000} minutes that one may take, waiting for others included: ask again when fewer do`
  })
)

/** The answer to a waiting caller whose token may no longer read the result. */
const lostToken = new Unauthorized({ detail: "Your token is not good any more, or has another role by now" })

// Lists the models that are available here.
//
// Configuration is shown by the names of settings, never by values: no key and no address leaves the server.

export const modelsHandlers = HttpApiBuilder.group(Api, "models", (handlers) =>
  handlers.handle(
    "get",
    Effect.fn("http.models.get")(function* ({ params }) {
      const { prices, providers, resolve } = yield* Models
      yield* reading(params.projectId, Effect.void)
      const found = yield* Effect.result(resolve({ agentName: "", model: null }))
      return found._tag === "Success"
        ? {
            default: {
              provider: found.success.provider,
              name: found.success.name,
              price: found.success.price
            },
            defaultMissing: null,
            providers,
            prices
          }
        : { default: null, defaultMissing: found.failure.message, providers, prices }
    })
  )
)

// Denials, and the record of denied approvals.

export const denialsHandlers = HttpApiBuilder.group(Api, "denials", (handlers) =>
  handlers.handle(
    "list",
    Effect.fn("http.denials.list")(function* ({ params, query }) {
      const denials = yield* Denials
      const { agentId, runId } = query
      return yield* reading(
        params.projectId,
        pageById(query, (before, limit) => denials.list({ agentId, runId }, before, limit))
      )
    })
  )
)

/**
 * Records an approval that is refused because the agent or the person lacks a right.
 *
 * In its own transaction, because the approval's transaction rolls back.
 */
export const recordingDenial =
  (projectId: ProjectId, taskId: TaskId, edited: Properties | null) =>
  <A, E, R>(approval: Effect.Effect<A, E, R>) =>
    Effect.tapError(approval, (problem) => {
      const why = whyDenied(problem)
      return why === undefined
        ? Effect.void
        : Effect.gen(function* () {
            const database = yield* Database
            const denials = yield* Denials
            const { userId } = yield* CurrentPrincipal
            yield* database.inProject(projectId, denials.ofApproval(taskId, userId, edited, why))
          })
    })

const whyDenied = (problem: unknown): Why | undefined => {
  if (problem instanceof Forbidden) return { reason: "forbidden", detail: problem.detail ?? "" }
  if (!(problem instanceof Conflict)) return undefined
  const { detail = "", reason } = problem
  return reason === "notPermitted" || reason === "agentDisabled" ? { reason, detail } : undefined
}
