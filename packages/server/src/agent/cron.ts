/**
 * When a cron expression is due, by the wall clock of a time zone.
 *
 * Flow: graph → outbox → dispatch → run → tool → task, beside it **agent** → model
 *
 * An expression that names hours follows the wall clock: a time that the clock
 * leaps over is due at the instant after the gap, and one that it shows twice is
 * due once, the first time. One that is due in every hour follows the hours that
 * pass: nothing is made up for in a gap and nothing left out when an hour
 * returns (decision 0017). Pure: it knows no schedule and no present time.
 */
import { Cron, DateTime, Option, Result } from "effect"
import { agentLimits } from "../limits.ts"

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
