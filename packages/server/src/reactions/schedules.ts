/**
 * Queues the runs of schedules that are due.
 *
 * A schedule is a row with its next time. Claiming it, queueing its run and storing the next time are one transaction, and a run is unique
 * per agent and scheduled time, so it fires once however many servers look. The agent's row is locked with it, so a change of the agent
 * comes entirely before or after. The database's clock decides.
 */
import { ContextName } from "@tropism/domain/context-event"
import type { AgentId, GraphEventId, ProjectId, RunId } from "@tropism/domain/ids"
import type { CatchUp, OverlapPolicy } from "@tropism/domain/schedule"
import { Context, Effect, Layer, Result } from "effect"
import { SqlClient } from "effect/sql"
import { nextInstant, readCron, type CronRule, previousInstant } from "../agents/cron-schedules.ts"
import { CrashPoint } from "../crash-point.ts"
import { Database, orDie, ProjectTransaction } from "../database/database.ts"
import { Ids } from "../ids.ts"
import { dispatchLimits } from "../limits.ts"
import { drive, share, untilNotified, Notifier } from "../outbox/notifier.ts"
import { isStopped } from "../runs/kill-switches.ts"
import { Runs } from "../runs/run-store.ts"
import type { NewRun, SkippedRun } from "../runs/run-types.ts"
import { lockAgents } from "./agent-capacity.ts"

interface DueSchedule {
  readonly agentId: AgentId
  readonly agentVersion: number
  readonly cron: string
  readonly timezone: string
  readonly nextFireAt: Date
  readonly backlogFrom: Date | null
  readonly backlogUntil: Date | null
  readonly catchUp: CatchUp
  readonly overlapPolicy: OverlapPolicy
  readonly maxPendingRuns: number
  readonly now: Date
}

interface LiveRuns {
  readonly agentId: AgentId
  /** Whether a scheduled run of it has not ended: it is queued, running or paused for a reason that ends by itself. */
  readonly isScheduled: boolean
  /** The number of its queued and running runs. */
  readonly count: number
}

/** A schedule with the outcome of its scheduled times. */
interface Settled extends Settlement {
  readonly schedule: DueSchedule
  readonly nextFireAt: Date
}

export class Scheduler extends Context.Service<
  Scheduler,
  {
    /** Queues due schedules until interrupted. */
    readonly run: Effect.Effect<never>
    /** Queues what is due now; true when there was anything. */
    readonly round: Effect.Effect<boolean>
  }
>()("@tropism/server/dispatch/Scheduler") {
  static readonly layer = Layer.effect(
    Scheduler,
    Effect.gen(function* () {
      const sql = yield* SqlClient.SqlClient
      const database = yield* Database
      const runs = yield* Runs
      const ids = yield* Ids
      const notifier = yield* Notifier

      const withSql = Effect.provideService(SqlClient.SqlClient, sql)

      const isUnended = sql`run.due_at is not null and (run.status in ('queued', 'running')
        or run.status = 'paused' and run.pause_reason in ('question', 'subAgents', 'killSwitch', 'toolResult'))`

      /** Nothing is due while a kill switch is on; those times count as missed, and `catchUp` decides about them. */
      const claim = Effect.gen(function* () {
        const { projectId } = yield* ProjectTransaction
        return yield* sql<DueSchedule>`
          select schedule.agent_id, agent.version as agent_version, schedule.cron, schedule.timezone, schedule.next_fire_at,
            schedule.backlog_from, schedule.backlog_until, agent.catch_up, agent.overlap_policy, agent.max_pending_runs, now() as now
          from kb.agent_schedules schedule join kb.agents agent on agent.id = schedule.agent_id
          where schedule.project_id = ${projectId} and agent.enabled and agent.deleted_at is null and not ${isStopped(sql)}
            and (schedule.next_fire_at <= now()
            or (schedule.backlog_from is not null and not exists (select 1 from kb.agent_runs run
              where run.agent_id = schedule.agent_id and ${isUnended})))
          order by schedule.next_fire_at limit ${dispatchLimits.batchSchedules}
          for update of schedule skip locked for share of agent skip locked`
      })

      /** Returns the claimed schedules whose agents no other transaction has locked; the others are claimed again later. */
      const claimHeld = Effect.gen(function* () {
        const due = yield* claim
        const held = new Set(
          yield* withSql(
            lockAgents(
              due.map(({ agentId }) => agentId),
              "pass"
            )
          )
        )
        return due.filter(({ agentId }) => held.has(agentId))
      })

      /** Queried only once the schedules are locked: the previous holder may have queued a run. */
      const findLive = (due: ReadonlyArray<DueSchedule>) =>
        Effect.map(
          sql<LiveRuns>`
            select agent_id, exists (select from kb.agent_runs run where run.agent_id = agent.agent_id and ${isUnended}) as is_scheduled,
              (select count(*) from kb.agent_runs run where run.agent_id = agent.agent_id
                and run.status in ('queued', 'running') and run.backtest_id is null)::int as count
            from unnest(${due.map((schedule) => schedule.agentId)}::uuid[]) as agent(agent_id)`,
          (rows) => new Map(rows.map((row) => [row.agentId, row]))
        )

      const store = (settled: ReadonlyArray<Settled>) => {
        const rows = settled.map(({ backlog, nextFireAt, schedule }) => ({
          agentId: schedule.agentId,
          nextFireAt,
          backlogFrom: backlog?.from ?? null,
          backlogUntil: backlog?.until ?? null
        }))
        return sql`
          update kb.agent_schedules schedule
          set next_fire_at = row."nextFireAt", backlog_from = row."backlogFrom", backlog_until = row."backlogUntil"
          from jsonb_to_recordset(${JSON.stringify(rows)}::text::jsonb)
            as row("agentId" uuid, "nextFireAt" timestamptz, "backlogFrom" timestamptz, "backlogUntil" timestamptz)
          where schedule.agent_id = row."agentId"`
      }

      const batch = Effect.gen(function* () {
        const due = yield* claimHeld
        if (due.length === 0) return 0
        const live = yield* findLive(due)
        const settled = due.flatMap((schedule) => settleSchedule(schedule, live.get(schedule.agentId)) ?? [])
        yield* store(settled)
        yield* runs.queue(
          yield* each(
            settled,
            ({ fires }) => fires,
            (schedule, fire, id) => newRun(schedule, fire, id)
          )
        )
        yield* runs.skip(
          yield* each(
            settled,
            ({ omissions }) => omissions,
            (schedule, omission, id) => skippedRun(schedule, omission, id)
          )
        )
        yield* CrashPoint.hit("schedule.beforeCommit")
        return settled.length
      }).pipe(orDie)

      /** Creates a record with a new id for each part of each schedule. */
      const each = <P, A>(
        settled: ReadonlyArray<Settled>,
        parts: (one: Settled) => ReadonlyArray<P>,
        make: (schedule: DueSchedule, part: P, id: RunId) => A
      ) =>
        Effect.forEach(
          settled.flatMap((one) => parts(one).map((part) => ({ schedule: one.schedule, part }))),
          ({ part, schedule }) => Effect.map(ids.next, (id) => make(schedule, part, id as RunId))
        )

      const round = Effect.gen(function* () {
        const due = yield* orDie(
          sql<{ projectId: ProjectId }>`select project_id from kb.projects_with_due_schedules() as project_id`
        )
        let fired = 0
        for (const { projectId } of due)
          fired += yield* share("Scheduler", projectId, database.inProject(projectId, batch))
        if (fired > 0) yield* CrashPoint.hit("schedule.afterCommit")
        return fired > 0
      }).pipe(Effect.withSpan("Scheduler.round"))

      return Scheduler.of({
        run: drive("Scheduler", "schedules", untilNotified, round).pipe(
          Effect.provideService(Notifier, notifier)
        ),
        round
      })
    })
  )
}

/** Returns the outcome of a schedule's times; undefined when this server's calendar cannot read it, which leaves it to another. */
const settleSchedule = (schedule: DueSchedule, live: LiveRuns | undefined): Settled | undefined => {
  const { backlogFrom, backlogUntil, catchUp, nextFireAt, now, overlapPolicy } = schedule
  const rule = Result.getOrUndefined(readCron(schedule.cron, schedule.timezone))
  const later = rule && (nextFireAt > now ? nextFireAt : nextInstant(rule, now))
  if (rule === undefined || later === undefined) return undefined
  const backlog: Backlog | undefined =
    backlogFrom && backlogUntil ? { from: backlogFrom, until: backlogUntil } : undefined
  const isBusy = live?.isScheduled === true
  const settled = settle({ rule, now, nextFireAt, backlog, catchUp, overlapPolicy, isBusy })
  return { ...withinPlaces(settled, schedule, live?.count ?? 0), schedule, nextFireAt: later }
}

/** Limits the runs to the agent's free places. */
const withinPlaces = (settled: Settlement, { maxPendingRuns }: DueSchedule, count: number): Settlement => {
  const places = Math.max(0, maxPendingRuns - count)
  if (settled.fires.length <= places) return settled
  const reason = `Skipped: the agent had ${maxPendingRuns === 1 ? "a run that waited or worked" : `${maxPendingRuns} runs that waited or worked`}, as many as it may have`
  const omitted = settled.fires.slice(places).map(({ dueAt }): Omission => ({ dueAt, reason }))
  return { ...settled, fires: settled.fires.slice(0, places), omissions: [...settled.omissions, ...omitted] }
}

const newRun = (schedule: DueSchedule, { dueAt, until }: Fire, id: RunId): NewRun => ({
  id,
  agentId: schedule.agentId,
  agentVersion: schedule.agentVersion,
  trigger: {
    type: "schedule",
    dueAt: dueAt.toISOString(),
    ...(until === undefined ? {} : { madeUpUntil: until.toISOString() })
  },
  contextName: ContextName.make(`run-${id}`),
  // A scheduled run is the root of a chain of its own, named after its first run.
  rootEventId: id as string as GraphEventId,
  depth: 0,
  userId: null,
  dueAt: dueAt.toISOString()
})

const skippedRun = (schedule: DueSchedule, { dueAt, reason }: Omission, id: RunId): SkippedRun => ({
  id,
  agentId: schedule.agentId,
  agentVersion: schedule.agentVersion,
  trigger: { type: "schedule", dueAt: dueAt.toISOString() },
  dueAt: dueAt.toISOString(),
  reason
})

// Decides which times of a schedule fire, wait or are skipped.
//
// A time that is found late was missed. `catchUp` selects the missed times that are caught up, `overlapPolicy` what happens while an
// earlier run is active; with both `all` and `skip` the missed ones wait and run one after another. Whatever does not fire is returned with
// its reason. Pure: it reads no clock.

/** A schedule at the moment the scheduler locks it. */
export interface OwingSchedule {
  readonly rule: CronRule
  readonly now: Date
  readonly nextFireAt: Date
  /** Missed times that still wait. */
  readonly backlog: Backlog | undefined
  readonly catchUp: CatchUp
  readonly overlapPolicy: OverlapPolicy
  /** Whether a run of an earlier time has not ended. */
  readonly isBusy: boolean
}

interface Backlog {
  readonly from: Date
  readonly until: Date
}

/** A time that gets a run. */
interface Fire {
  readonly dueAt: Date
  /** The newest of the missed times that the run covers besides its own. */
  readonly until?: Date
}

/** A time that gets no run, and why. */
interface Omission {
  readonly dueAt: Date
  readonly reason: string
}

interface Settlement {
  readonly fires: ReadonlyArray<Fire>
  readonly omissions: ReadonlyArray<Omission>
  readonly backlog: Backlog | undefined
}

const nothing: Settlement = { fires: [], omissions: [], backlog: undefined }

/** Settles every time until now, and the backlog. */
export const settle = (schedule: OwingSchedule): Settlement => {
  const { backlog, catchUp, nextFireAt, now } = schedule
  if (catchUp === "all") return settleAll(schedule, backlog?.from ?? nextFireAt)
  // A schedule that no longer catches up drops its backlog.
  if (nextFireAt > now) return nothing
  const missedBefore = new Date(now.getTime() - dispatchLimits.scheduleGraceMs)
  if (catchUp === "one" || nextFireAt >= missedBefore) return settleOne(schedule, nextFireAt)
  return settleNone(schedule, missedBefore)
}

/** One time fires for all that are due. */
const settleOne = (schedule: OwingSchedule, dueAt: Date): Settlement => {
  const newest = newestUntil(schedule, schedule.now, dueAt)
  const until = newest > dueAt ? { until: newest } : {}
  return mustWait(schedule)
    ? { ...nothing, omissions: [{ dueAt, reason: overlapReason(until.until) }] }
    : { ...nothing, fires: [{ dueAt, ...until }] }
}

/** Skips missed times but not one that is due just now. */
const settleNone = (schedule: OwingSchedule, missedBefore: Date): Settlement => {
  const { nextFireAt, now, rule } = schedule
  const until = newestUntil(schedule, new Date(missedBefore.getTime() - 1), nextFireAt)
  const missed = { dueAt: nextFireAt, reason: `${missedText(nextFireAt, until)}, and catchUp is none` }
  const timely = nextInstant(rule, until)
  const rest = timely && timely <= now ? settleOne(schedule, timely) : nothing
  return { ...rest, omissions: [missed, ...rest.omissions] }
}

/** Each time gets its run; only the newest up to a limit, and one at a time when runs may not overlap. */
const settleAll = (schedule: OwingSchedule, from: Date): Settlement => {
  const { backlog, now, overlapPolicy } = schedule
  if (from > now) return nothing
  const { instants, cutUntil } = newestInstants(schedule, from)
  const [first, ...others] = instants
  if (first === undefined) return nothing
  const isLate = backlog !== undefined || others.length > 0
  if (!isLate) return settleOne(schedule, first)
  const omissions = cutUntil
    ? [
        {
          dueAt: from,
          reason: `${missedText(from, cutUntil)}, and at most the newest ${dispatchLimits.catchUpInstants} are made up for`
        }
      ]
    : []
  if (overlapPolicy === "allow") return { ...nothing, fires: instants.map((dueAt) => ({ dueAt })), omissions }
  const waiting = schedule.isBusy ? instants : others
  const [oldest] = waiting
  const newest = waiting.at(-1)
  return {
    fires: schedule.isBusy ? [] : [{ dueAt: first }],
    omissions,
    backlog: oldest && newest && { from: oldest, until: newest }
  }
}

/** Returns the newest times from `from` until now, oldest first, and the newest of those cut by the limit. */
const newestInstants = ({ now, rule }: OwingSchedule, from: Date) => {
  const instants: Array<Date> = []
  for (let at = previousInstant(rule, after(now)); at && at > from; at = previousInstant(rule, at)) {
    if (instants.length === dispatchLimits.catchUpInstants) return { instants, cutUntil: at }
    instants.unshift(at)
  }
  // The oldest is the time in the row, whatever the expression yields.
  if (instants.length === dispatchLimits.catchUpInstants) return { instants, cutUntil: from }
  return { instants: [from, ...instants], cutUntil: undefined }
}

/** Returns the newest time of the rule until `until`, but not before `atLeast`. */
const newestUntil = ({ rule }: OwingSchedule, until: Date, atLeast: Date): Date => {
  const newest = previousInstant(rule, after(until))
  return newest && newest > atLeast ? newest : atLeast
}

const after = (instant: Date): Date => new Date(instant.getTime() + 1)

const mustWait = ({ isBusy, overlapPolicy }: OwingSchedule): boolean => isBusy && overlapPolicy === "skip"

const missedText = (from: Date, until: Date): string =>
  until > from
    ? `Missed, as was every instant until ${until.toISOString()}: no server fired it in time`
    : "Missed: no server fired it in time"

const overlapReason = (until: Date | undefined): string =>
  until
    ? `Skipped, as was every instant until ${until.toISOString()}: the earlier run had not ended, and overlapPolicy is skip`
    : "Skipped: the earlier run had not ended, and overlapPolicy is skip"
