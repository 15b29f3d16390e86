/**
 * When a schedule fires next.
 *
 * Flow: graph → outbox → dispatch → run → tool → task, beside it **agent** → model
 *
 * A cron expression with five fields is read in an IANA time zone. One that
 * can never fire is refused when it is saved, not discovered by silence.
 */
import { Clock, Cron, Effect, Result, Schema } from "effect"

export class ScheduleRefused extends Schema.TaggedError<ScheduleRefused>()("ScheduleRefused", {
  pointer: Schema.String,
  detail: Schema.String
}) {}

/** The first instant after now (or after `after`) at which the expression is due. */
export const nextFire = Effect.fnUntraced(function* (expression: string, timezone: string, after?: Date) {
  if (expression.trim().split(/\s+/).length !== 5) {
    return yield* refuse(
      "/cronSchedule",
      `"${expression}" is no cron expression: it needs five fields, minute hour day month weekday, e.g. 0 9 * * 1-5`
    )
  }
  yield* checkTimezone(timezone)
  const parsed = Cron.parse(expression, timezone)
  if (Result.isFailure(parsed))
    return yield* refuse("/cronSchedule", `"${expression}" is no cron expression: ${parsed.failure.message}`)
  const from = after ?? new Date(yield* Clock.currentTimeMillis)
  return yield* Effect.try({ try: () => Cron.next(parsed.success, from), catch: () => undefined }).pipe(
    Effect.mapError(
      () => new ScheduleRefused({ pointer: "/cronSchedule", detail: `"${expression}" never fires` })
    )
  )
})

const refuse = (pointer: string, detail: string) => Effect.fail(new ScheduleRefused({ pointer, detail }))

/** Refuses a zone that no schedule could be read in. */
export const checkTimezone = (timezone: string): Effect.Effect<void, ScheduleRefused> =>
  isTimezone(timezone)
    ? Effect.void
    : refuse("/timezone", `"${timezone}" is no IANA time zone, e.g. Europe/Berlin`)

const isTimezone = (name: string): boolean => supported().has(name) || name === "UTC"

let names: ReadonlySet<string> | undefined
const supported = (): ReadonlySet<string> => (names ??= new Set(Intl.supportedValuesOf("timeZone")))
