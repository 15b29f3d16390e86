/**
 * Decides what becomes of the instants that a schedule owes: they fire, wait or are skipped.
 *
 * Flow: graph → outbox → **dispatch** → run → tool → task
 *
 * An instant that is found late was missed. `catchUp` says which missed ones
 * are made up for, `overlapPolicy` what happens while an earlier run is at work;
 * with both `all` and `skip` the missed ones wait and run one after another.
 * Whatever does not fire is answered with its reason. Pure: it reads no clock.
 */
import type { CatchUp, OverlapPolicy } from "@tropism/domain/schedule"
import { type CronRule, nextInstant, previousInstant } from "../agent/cron.ts"
import { dispatchLimits } from "../limits.ts"

/** A schedule at the moment in which the scheduler holds it. */
export interface OwingSchedule {
  readonly rule: CronRule
  readonly now: Date
  readonly nextFireAt: Date
  /** Missed instants that still wait. */
  readonly backlog: Backlog | undefined
  readonly catchUp: CatchUp
  readonly overlapPolicy: OverlapPolicy
  /** Whether a run of an earlier instant has not ended. */
  readonly isBusy: boolean
}

export interface Backlog {
  readonly from: Date
  readonly until: Date
}

/** An instant that gets a run. */
export interface Fire {
  readonly dueAt: Date
  /** The newest of the missed instants that the run makes up for, beside its own. */
  readonly until?: Date
}

/** An instant that gets none, and why. */
export interface Omission {
  readonly dueAt: Date
  readonly reason: string
}

export interface Settlement {
  readonly fires: ReadonlyArray<Fire>
  readonly omissions: ReadonlyArray<Omission>
  readonly backlog: Backlog | undefined
}

const nothing: Settlement = { fires: [], omissions: [], backlog: undefined }

/** Settles every instant until now, and what waited before. */
export const settle = (schedule: OwingSchedule): Settlement => {
  const { backlog, catchUp, nextFireAt, now } = schedule
  if (catchUp === "all") return settleAll(schedule, backlog?.from ?? nextFireAt)
  // A backlog of a schedule that is not to make up for it any more is let go.
  if (nextFireAt > now) return nothing
  const missedBefore = new Date(now.getTime() - dispatchLimits.scheduleGraceMs)
  if (catchUp === "one" || nextFireAt >= missedBefore) return settleOne(schedule, nextFireAt)
  return settleNone(schedule, missedBefore)
}

/** One instant fires for all that are due. */
const settleOne = (schedule: OwingSchedule, dueAt: Date): Settlement => {
  const newest = newestUntil(schedule, schedule.now, dueAt)
  const until = newest > dueAt ? { until: newest } : {}
  return mustWait(schedule)
    ? { ...nothing, omissions: [{ dueAt, reason: overlapReason(until.until) }] }
    : { ...nothing, fires: [{ dueAt, ...until }] }
}

/** What was missed is let go; what is due just now is not. */
const settleNone = (schedule: OwingSchedule, missedBefore: Date): Settlement => {
  const { nextFireAt, now, rule } = schedule
  const until = newestUntil(schedule, new Date(missedBefore.getTime() - 1), nextFireAt)
  const missed = { dueAt: nextFireAt, reason: `${missedText(nextFireAt, until)}, and catchUp is none` }
  const timely = nextInstant(rule, until)
  const rest = timely && timely <= now ? settleOne(schedule, timely) : nothing
  return { ...rest, omissions: [missed, ...rest.omissions] }
}

/** Each instant gets its run; only so many of the newest, and one at a time where none may overlap. */
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

/** The newest instants from one until now, oldest first, and the newest of those that are too many. */
const newestInstants = ({ now, rule }: OwingSchedule, from: Date) => {
  const instants: Array<Date> = []
  for (let at = previousInstant(rule, after(now)); at && at > from; at = previousInstant(rule, at)) {
    if (instants.length === dispatchLimits.catchUpInstants) return { instants, cutUntil: at }
    instants.unshift(at)
  }
  // The oldest is what the row says, whatever the expression makes of it.
  if (instants.length === dispatchLimits.catchUpInstants) return { instants, cutUntil: from }
  return { instants: [from, ...instants], cutUntil: undefined }
}

/** The newest instant of the rule until one, but not before another. */
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
