/**
 * Which schedules are taken, and when one fires next.
 *
 * Flow: graph → outbox → dispatch → run → tool → task, beside it **agent** → model
 *
 * One that can never fire, or fires more often than this server takes, is
 * refused when it is saved, not discovered by silence or by a bill. When an
 * expression is due is `cron.ts`'s; what becomes of missed time is `dispatch`'s.
 */
import { Context, Cron, Effect, Result, Schema } from "effect"
import { agentLimits } from "../limits.ts"
import { type CronRule, nextInstant, readCron } from "./cron.ts"

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
