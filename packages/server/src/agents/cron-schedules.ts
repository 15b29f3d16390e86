/**
 * Validates schedules and computes their next times.
 *
 * A schedule that never fires, or fires more often than this server allows, is refused when it is saved; otherwise silence or a bill would
 * reveal it.
 */
import type { Agent } from "@tropism/domain/agent"
import type { SchedulePreview } from "@tropism/domain/schedule"
import { Context, Cron, Effect, Result, Schema, DateTime, Option } from "effect"
import { SqlClient } from "effect/sql"
import { onlyRow, orDie } from "../database/database.ts"
import { agentLimits } from "../limits.ts"

export class ScheduleRefused extends Schema.TaggedError<ScheduleRefused>()("ScheduleRefused", {
  pointer: Schema.String,
  detail: Schema.String
}) {}

/** The minimum interval of a schedule; cron itself cannot express less than a minute. */
export class MinScheduleSeconds extends Context.Reference<number>(
  "@tropism/server/agent/MinScheduleSeconds",
  {
    defaultValue: () => 60
  }
) {}

/** Parses a schedule; fails for an invalid expression, an unknown zone, or one that never fires. */
export const readSchedule = Effect.fnUntraced(function* (expression: string, timezone: string, now: Date) {
  yield* checkTimezone(timezone)
  const rule = yield* Result.match(readCron(expression, timezone), {
    onFailure: (detail) => refuse("/cronSchedule", detail),
    onSuccess: Effect.succeed
  })
  if (nextInstant(rule, now) === undefined)
    return yield* refuse("/cronSchedule", `"${expression}" never fires: no calendar has such a day`)
  return rule
})

/** Refuses a schedule that fires more often than this server allows. */
export const checkFloor = Effect.fnUntraced(function* (
  expression: string,
  rule: CronRule,
  floorSeconds: number
) {
  const seconds = shortestIntervalMinutes(expression, rule) * 60
  if (seconds >= floorSeconds) return
  return yield* refuse(
    "/cronSchedule",
    `"${expression}" fires every ${seconds} seconds at times; this server takes no schedule that fires more often than every ${floorSeconds} seconds, which TROPISM_MIN_SCHEDULE_SECONDS sets`
  )
})

/** Returns the next `count` times after `after`, oldest first. */
export const nextInstants = (rule: CronRule, after: Date, count: number): ReadonlyArray<Date> => {
  const instants: Array<Date> = []
  for (let at = nextInstant(rule, after); at && instants.length < count; at = nextInstant(rule, at))
    instants.push(at)
  return instants
}

const dayMinutes = 1_440

/** Returns the shortest interval between two times of a rule, not counting clock changes. */
const shortestIntervalMinutes = (expression: string, { onWall }: CronRule): number => {
  const hours = onWall.hours.size === 0 ? allHours : [...onWall.hours]
  const minutes = onWall.minutes.size === 0 ? allMinutes : [...onWall.minutes]
  const times = hours.flatMap((hour) => minutes.map((minute) => hour * 60 + minute)).toSorted((a, b) => a - b)
  const within = times.slice(1).map((time, index) => time - (times[index] ?? 0))
  const shortest = Math.min(dayMinutes, ...within)
  const overnight = dayMinutes - (times.at(-1) ?? 0) + (times[0] ?? 0)
  return overnight < shortest && hasNeighbouringDays(expression) ? overnight : shortest
}

const allHours = Array.from({ length: 24 }, (_, hour) => hour)
const allMinutes = Array.from({ length: 60 }, (_, minute) => minute)

/** Whether a rule ever fires on two consecutive days; checks the next years. */
const hasNeighbouringDays = (expression: string): boolean => {
  const midnights = Cron.parseUnsafe(`0 0 ${expression.trim().split(/\s+/).slice(2).join(" ")}`, "UTC")
  let day = Cron.next(midnights, firstDay)
  for (let steps = 0; steps < agentLimits.scheduleDays; steps++) {
    const next = Cron.next(midnights, day)
    if (next.getTime() - day.getTime() === dayMinutes * 60_000) return true
    day = next
  }
  return false
}

const firstDay = new Date("2024-01-01T00:00:00Z")

const refuse = (pointer: string, detail: string) => Effect.fail(new ScheduleRefused({ pointer, detail }))

/** Refuses an unknown time zone. */
export const checkTimezone = (timezone: string): Effect.Effect<void, ScheduleRefused> =>
  isTimezone(timezone)
    ? Effect.void
    : refuse("/timezone", `"${timezone}" is no IANA time zone, e.g. Europe/Berlin`)

const isTimezone = (name: string): boolean => supported().has(name) || name === "UTC"

let names: ReadonlySet<string> | undefined
const supported = (): ReadonlySet<string> => (names ??= new Set(Intl.supportedValuesOf("timeZone")))

// Computes when a cron expression is due, by the wall clock of a time zone.
//
// An expression that names hours follows the wall clock: a time that a clock change skips is due at the moment after the gap, and one that
// occurs twice is due once, the first time. One that is due in every hour follows elapsed hours: nothing is made up for in a gap and
// nothing left out when an hour repeats (decision 0017). Pure: it knows no schedule and no current time.

/** A parsed expression in a zone. */
export interface CronRule {
  readonly zone: DateTime.TimeZone
  /** The expression on a clock without changes. */
  readonly onWall: Cron.Cron
  /** The same on the zone's own clock, when it is due in every hour. */
  readonly inEveryHour: Cron.Cron | undefined
}

/** Parses an expression of five fields; the failure describes the error. */
export const readCron = (expression: string, timezone: string): Result.Result<CronRule, string> => {
  const zone = DateTime.zoneMakeNamed(timezone)
  if (Option.isNone(zone)) return Result.fail(`"${timezone}" is no IANA time zone, e.g. Europe/Berlin`)
  if (expression.trim().split(/\s+/).length !== 5)
    return Result.fail(
      `"${expression}" is no cron expression: it needs five fields, minute hour day month weekday, e.g. 0 9 * * 1-5`
    )
  const rule = Result.all({
    onWall: Cron.parse(expression, "UTC"),
    onClock: Cron.parse(expression, zone.value, { onDstOverlap: "both" })
  })
  return Result.mapBoth(rule, {
    onFailure: (error) => `"${expression}" is no cron expression: ${error.message}`,
    onSuccess: ({ onClock, onWall }): CronRule => ({
      zone: zone.value,
      onWall,
      inEveryHour: isEveryHour(onWall) ? onClock : undefined
    })
  })
}

const isEveryHour = ({ hours }: Cron.Cron): boolean => hours.size === 0 || hours.size === 24

/** Returns the first time after `after` at which the rule is due; undefined when there is none. */
export const nextInstant = (rule: CronRule, after: Date): Date | undefined =>
  rule.inEveryHour
    ? stepOnClock(rule.inEveryHour, after, Cron.next, Cron.prev)
    : stepOnWall(rule, wallOf(rule.zone, after), Cron.next, (instant) => instant > after)

/** Returns the last time before `before` at which the rule was due. */
export const previousInstant = (rule: CronRule, before: Date): Date | undefined =>
  rule.inEveryHour
    ? stepOnClock(rule.inEveryHour, before, Cron.prev, Cron.next)
    : stepOnWall(rule, latestWallBefore(rule.zone, before), Cron.prev, (instant) => instant < before)

type Step = (cron: Cron.Cron, from: Date) => Date

/** For a rule that no calendar satisfies the library's search throws. */
const stepTo = (step: Step, cron: Cron.Cron, from: Date): Date | undefined =>
  Result.getOrUndefined(Result.try(() => step(cron, from)))

/**
 * Steps from match to match on the zone's clock.
 *
 * **Gotchas** For a time that the clock skips, the library returns a later one that is no match, and may have skipped matches on the way: a
 * search backwards finds them.
 */
const stepOnClock = (cron: Cron.Cron, from: Date, step: Step, back: Step): Date | undefined => {
  let instant = stepTo(step, cron, from)
  for (let steps = 0; steps < agentLimits.cronSteps; steps++) {
    if (instant === undefined || Cron.match(cron, instant)) return instant
    const passed = passedBy(cron, from, instant, back)
    if (passed) return passed
    instant = stepTo(step, cron, instant)
  }
  return undefined
}

/** Returns the match between `from` and `to` that is nearest to `from`. */
const passedBy = (cron: Cron.Cron, from: Date, to: Date, back: Step): Date | undefined => {
  const isBetween = (instant: Date) => (instant < to && instant > from) || (instant > to && instant < from)
  let nearest: Date | undefined
  let instant = stepTo(back, cron, to)
  for (let steps = 0; steps < agentLimits.cronSteps && instant && isBetween(instant); steps++) {
    if (Cron.match(cron, instant)) nearest = instant
    instant = stepTo(back, cron, instant)
  }
  return nearest
}

/** Steps from wall time to wall time until its instant is on the wanted side. */
const stepOnWall = (
  { onWall, zone }: CronRule,
  from: Date,
  step: Step,
  isWanted: (instant: Date) => boolean
): Date | undefined => {
  let wall = stepTo(step, onWall, from)
  for (let steps = 0; steps < agentLimits.cronSteps && wall !== undefined; steps++) {
    const instant = instantOf(zone, wall)
    if (isWanted(instant)) return instant
    wall = stepTo(step, onWall, wall)
  }
  return undefined
}

/** Returns the zone's wall time, written as if it were UTC. */
const wallOf = (zone: DateTime.TimeZone, instant: Date): Date =>
  new Date(instant.getTime() + offsetAt(zone, instant))

const offsetAt = (zone: DateTime.TimeZone, instant: Date): number =>
  DateTime.zonedOffset(DateTime.makeZonedUnsafe(instant, { timeZone: zone }))

const dayMs = 86_400_000

/** Returns an upper bound of the wall times shown before the instant: an hour that repeats was first shown before the clock went back. */
const latestWallBefore = (zone: DateTime.TimeZone, instant: Date): Date =>
  new Date(
    Math.max(
      wallOf(zone, instant).getTime(),
      instant.getTime() + offsetAt(zone, new Date(instant.getTime() - dayMs))
    )
  )

/** Returns the instant of a wall time: the first of two, and the end of the gap for none. */
const instantOf = (zone: DateTime.TimeZone, wall: Date): Date => {
  const read = (disambiguation: DateTime.Disambiguation) =>
    DateTime.toDateUtc(
      DateTime.makeZonedUnsafe(wall, { timeZone: zone, adjustForTimeZone: true, disambiguation })
    )
  const first = read("earlier")
  if (wallOf(zone, first).getTime() === wall.getTime()) return first
  return endOfGap(zone, first, read("later"))
}

/** Returns the instant between two at which the offset changes. */
const endOfGap = (zone: DateTime.TimeZone, before: Date, after: Date): Date => {
  const offset = offsetAt(zone, after)
  let [early, late] = [before.getTime(), after.getTime()]
  while (late - early > 1) {
    const middle = Math.floor((early + late) / 2)
    if (offsetAt(zone, new Date(middle)) === offset) late = middle
    else early = middle
  }
  return new Date(late)
}

// Previews when an agent's schedule fires next.

/** Returns the next times of an agent's schedule; undefined when it has none. */
export const previewSchedule = Effect.fn("previewSchedule")(function* (agent: Agent) {
  const { catchUp, cronSchedule, enabled, overlapPolicy, timezone, triggerType } = agent
  if (cronSchedule === null) return undefined
  const sql = yield* SqlClient.SqlClient
  const { backlogFrom, backlogUntil, now } = yield* Effect.flatMap(
    sql<{ now: Date; backlogFrom: Date | null; backlogUntil: Date | null }>`
      select now() as now, backlog_from, backlog_until from (select 1) present
      left join kb.agent_schedules schedule on schedule.agent_id = ${agent.id}`,
    onlyRow
  )
  const rule = Result.getOrUndefined(readCron(cronSchedule, timezone))
  const preview: SchedulePreview = {
    cronSchedule,
    timezone,
    catchUp,
    overlapPolicy,
    active: enabled && triggerType === "schedule",
    fires: rule ? nextInstants(rule, now, agentLimits.previewFires).map((at) => shown(rule, at)) : [],
    waiting:
      backlogFrom && backlogUntil
        ? { from: backlogFrom.toISOString(), until: backlogUntil.toISOString() }
        : null
  }
  return preview
}, orDie)

/** Returns the next times of a schedule that is not saved; fails with the pointer of an error. */
export const firesOf = Effect.fn("firesOf")(function* (cronSchedule: string, timezone: string) {
  const now = yield* DateTime.nowAsDate
  const rule = yield* readSchedule(cronSchedule, timezone, now)
  return nextInstants(rule, now, agentLimits.previewFires).map((at) => shown(rule, at))
})

const shown = ({ zone }: CronRule, at: Date) => ({
  at: at.toISOString(),
  localTime: DateTime.formatIsoOffset(DateTime.makeZonedUnsafe(at, { timeZone: zone }))
})
