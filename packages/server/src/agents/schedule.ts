/**
 * Which schedules are taken, and when one fires next.
 *
 * One that can never fire, or fires more often than this server takes, is
 * refused when it is saved, not discovered by silence or by a bill. When an
 * expression is due is `cron.ts`'s; what becomes of missed time is `dispatch`'s.
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

/** No schedule fires more often than this; cron itself knows nothing shorter than a minute. */
export class MinScheduleSeconds extends Context.Reference<number>(
  "@tropism/server/agent/MinScheduleSeconds",
  {
    defaultValue: () => 60
  }
) {}

/** Reads a schedule; one that is no expression, names no zone or never fires is refused. */
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

/** Refuses a schedule that fires more often than this server takes. */
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

/** The next `count` instants after one, oldest first. */
export const nextInstants = (rule: CronRule, after: Date, count: number): ReadonlyArray<Date> => {
  const instants: Array<Date> = []
  for (let at = nextInstant(rule, after); at && instants.length < count; at = nextInstant(rule, at))
    instants.push(at)
  return instants
}

const dayMinutes = 1_440

/** The shortest time between two instants of a rule, clock changes apart. */
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

/** Whether a rule ever fires on two days of which one follows the other; the next years show it. */
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

/** Refuses a zone that no schedule could be read in. */
export const checkTimezone = (timezone: string): Effect.Effect<void, ScheduleRefused> =>
  isTimezone(timezone)
    ? Effect.void
    : refuse("/timezone", `"${timezone}" is no IANA time zone, e.g. Europe/Berlin`)

const isTimezone = (name: string): boolean => supported().has(name) || name === "UTC"

let names: ReadonlySet<string> | undefined
const supported = (): ReadonlySet<string> => (names ??= new Set(Intl.supportedValuesOf("timeZone")))

// When a cron expression is due, by the wall clock of a time zone.
//
// An expression that names hours follows the wall clock: a time that the clock
// leaps over is due at the instant after the gap, and one that it shows twice is
// due once, the first time. One that is due in every hour follows the hours that
// pass: nothing is made up for in a gap and nothing left out when an hour
// returns (decision 0017). Pure: it knows no schedule and no present time.

/** An expression in a zone, read. */
export interface CronRule {
  readonly zone: DateTime.TimeZone
  /** The expression on a clock that never leaps. */
  readonly onWall: Cron.Cron
  /** The same on the zone's own clock, when it is due in every hour. */
  readonly inEveryHour: Cron.Cron | undefined
}

/** Reads an expression of five fields; the failure says what is wrong with it. */
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

/** The first instant after `after` at which the rule is due; undefined when there is none. */
export const nextInstant = (rule: CronRule, after: Date): Date | undefined =>
  rule.inEveryHour
    ? stepOnClock(rule.inEveryHour, after, Cron.next, Cron.prev)
    : stepOnWall(rule, wallOf(rule.zone, after), Cron.next, (instant) => instant > after)

/** The last instant before `before` at which the rule was due. */
export const previousInstant = (rule: CronRule, before: Date): Date | undefined =>
  rule.inEveryHour
    ? stepOnClock(rule.inEveryHour, before, Cron.prev, Cron.next)
    : stepOnWall(rule, latestWallBefore(rule.zone, before), Cron.prev, (instant) => instant < before)

type Step = (cron: Cron.Cron, from: Date) => Date

/** A rule that no calendar satisfies makes the library's search end with an error. */
const stepTo = (step: Step, cron: Cron.Cron, from: Date): Date | undefined =>
  Result.getOrUndefined(Result.try(() => step(cron, from)))

/**
 * Goes from match to match on the zone's clock.
 *
 * **Gotchas** For a time that the clock leaps over the library answers a later
 * one that is no match, and may have leapt over matches to reach it: they are
 * looked for on the way back.
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

/** The match nearest to `from` of those between it and `to`. */
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

/** Goes from wall time to wall time until its instant is on the wanted side. */
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

/** What the zone's clock shows, written as if it were UTC. */
const wallOf = (zone: DateTime.TimeZone, instant: Date): Date =>
  new Date(instant.getTime() + offsetAt(zone, instant))

const offsetAt = (zone: DateTime.TimeZone, instant: Date): number =>
  DateTime.zonedOffset(DateTime.makeZonedUnsafe(instant, { timeZone: zone }))

const dayMs = 86_400_000

/** No wall time later than this was shown before the instant: an hour that returns was shown the day before its return. */
const latestWallBefore = (zone: DateTime.TimeZone, instant: Date): Date =>
  new Date(
    Math.max(
      wallOf(zone, instant).getTime(),
      instant.getTime() + offsetAt(zone, new Date(instant.getTime() - dayMs))
    )
  )

/** The instant at which the zone's clock shows a wall time: the first of two, and the end of the gap for none. */
const instantOf = (zone: DateTime.TimeZone, wall: Date): Date => {
  const read = (disambiguation: DateTime.Disambiguation) =>
    DateTime.toDateUtc(
      DateTime.makeZonedUnsafe(wall, { timeZone: zone, adjustForTimeZone: true, disambiguation })
    )
  const first = read("earlier")
  if (wallOf(zone, first).getTime() === wall.getTime()) return first
  return endOfGap(zone, first, read("later"))
}

/** The instant between two at which the offset changes. */
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

// Tells when an agent's schedule fires next.
//

/** The next instants of an agent's schedule; undefined when it has none. */
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

/** The next instants of a schedule that nobody has; one that is none is refused with its place. */
export const firesOf = Effect.fn("firesOf")(function* (cronSchedule: string, timezone: string) {
  const now = yield* DateTime.nowAsDate
  const rule = yield* readSchedule(cronSchedule, timezone, now)
  return nextInstants(rule, now, agentLimits.previewFires).map((at) => shown(rule, at))
})

const shown = ({ zone }: CronRule, at: Date) => ({
  at: at.toISOString(),
  localTime: DateTime.formatIsoOffset(DateTime.makeZonedUnsafe(at, { timeZone: zone }))
})
