/**
 * How much waits and how much is at work, in the whole database, right now.
 *
 * Flow: graph → outbox → dispatch → run → tool → task, all on **database**
 *
 * Only numbers of all projects together leave here, so a row of one project is
 * never shown to another.
 */
import { Effect } from "effect"
import { SqlClient } from "effect/sql"
import { telemetryLimits } from "../limits.ts"
import { orDie } from "./database.ts"
import { restReason } from "./restored-rest.ts"

export interface Gauges {
  readonly queuedRuns: number
  /** Since that one of them was queued last that waits for the longest, without backtests' and what kill switches hold. */
  readonly oldestQueuedSeconds: number
  readonly liveLeases: number
  readonly lapsedLeases: number
  /** Runs that rest, whatever they wait for; up to `telemetryLimits.countedMax`. */
  readonly pausedRuns: number
  readonly questionRuns: number
  readonly subAgentRuns: number
  /** Up to `telemetryLimits.countedMax`, as are the next three and the agents that disabled themselves. */
  readonly stepLimitRuns: number
  readonly timeoutRuns: number
  readonly budgetRuns: number
  readonly killSwitchRuns: number
  /** Runs that wait for a client to answer a tool call. */
  readonly toolResultRuns: number
  /** Since the instant of that schedule which is due for the longest and held by no kill switch. */
  readonly overdueScheduleSeconds: number
  /** Since the instant at which that source of foreign events was due which is due for the longest, in a project of which nobody asks any and which no kill switch holds. */
  readonly overdueSourceSeconds: number
  readonly disabledAgents: number
  /** Up to `telemetryLimits.countedMax`. */
  readonly suspendedSubscriptions: number
  /** Kill switches that are on, of projects and of the server. */
  readonly projectSwitches: number
  readonly serverSwitches: number
  readonly undispatchedEvents: number
  readonly oldestEventSeconds: number
  readonly waitingEntries: number
  /** Up to `telemetryLimits.countedMax`, as are the tasks. */
  readonly deadLetters: number
  readonly pendingTasks: number
  /** How long the entry that is being handled for the longest is being handled. */
  readonly oldestProcessingSeconds: number
  /** Connections of all servers, by whether they are at work. */
  readonly activeConnections: number
  readonly idleConnections: number
  /** Circuit breakers of providers that are open, since when the first of them is, and runs that wait for one; up to `telemetryLimits.countedMax`. */
  readonly openOutages: number
  readonly oldestOutageSeconds: number
  readonly providerRuns: number
  /** What the database takes on its disk, without the log of its changes. */
  readonly databaseBytes: number
}

type Row = Readonly<Record<keyof Gauges, number | bigint>>

/** Reads the gauges. What connections do is seen by their own login alone: the server's, or the owner's where servers log in as it. */
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
