/**
 * Says in the log that the database is away: once, then seldom, and when it is back.
 *
 * Every loop of a server finds it out by itself, again and again, and one cause
 * is told once for all of them. What breaks for another reason is told each time.
 * That it is back says the lookout alone: of all loops it is the one that always asks.
 */
import { Cause, Clock, Context, Effect, Fiber } from "effect"
import { SqlError } from "effect/sql"
import { isBrokenByAway } from "../database/connection-errors.ts"

/** What the log was told last. */
interface Telling {
  isAway: boolean
  awayAtMs: number
}

export const nothingTold = (): Telling => ({ isAway: false, awayAtMs: -Infinity })

/** Of each server its own; whoever starts several in one program provides one to each. */
export class Outage extends Context.Reference<Telling>("@tropism/server/outbox/Outage", {
  defaultValue: nothingTold
}) {}

/** Tells that somebody found the database away, unless that was told a moment ago. */
export const reportOutage = Effect.fnUntraced(function* (cause: unknown) {
  const telling = yield* Outage
  const nowMs = yield* Clock.currentTimeMillis
  if (nowMs - telling.awayAtMs < outageLimits.tellIntervalMs) return
  telling.isAway = true
  telling.awayAtMs = nowMs
  yield* Effect.logError(
    "The database does not answer: whatever the server does by itself waits for it",
    { code: "databaseAway" },
    cause
  )
})

/**
 * Does an effect again until the database is back that was away when it was done, for so long at most, and tells whether it was.
 *
 * **Details** What broke may be done all the same, as where only its answer was lost. Whoever interrupts waits for a try and for no pause.
 * Behind each pause there is a try, however late: a program that stood still meanwhile asks once more before it gives up.
 */
export const reportingOutages = <A, E, R>(
  effect: Effect.Effect<A, E, R>,
  awaySinceMs?: number
): Effect.Effect<{ readonly value: A; readonly wasAway: boolean }, E, R> =>
  Effect.catchCause(
    Effect.map(effect, (value) => ({ value, wasAway: awaySinceMs !== undefined })),
    Effect.fnUntraced(function* (cause) {
      const nowMs = yield* Clock.currentTimeMillis
      const sinceMs = awaySinceMs ?? nowMs
      const isOver = nowMs - sinceMs >= outageLimits.tryForMs
      if (isOver || Cause.hasInterrupts(cause) || !isBrokenByAway(cause))
        return yield* Effect.failCause(cause)
      yield* reportOutage(Cause.squash(cause))
      yield* Effect.interruptible(Effect.sleep(outageLimits.retryMs))
      return yield* reportingOutages(effect, sinceMs)
    })
  )

/** The same for what does nothing a second time. */
export const retryDuringOutages = <A, E, R>(effect: Effect.Effect<A, E, R>): Effect.Effect<A, E, R> =>
  Effect.map(reportingOutages(effect), ({ value }) => value)

/** Tells that it is back, where it was told that it is away. */
export const tellBack = Effect.flatMap(Outage, (telling) => {
  if (!telling.isAway) return Effect.void
  telling.isAway = false
  return Effect.logWarning("The database answers again", { code: "databaseBack" })
})

// The bounds of a database that is away: how it is told, and how what matters is tried again.
//

export const outageLimits = {
  /** Between two lines of the log that say so. */
  tellIntervalMs: 60_000,
  /** Before what did not reach it is tried again, where that matters: heartbeats, and what was paid for. */
  retryMs: 1_000,
  /** For so long, however long each try takes; where the database answers others meanwhile, what it does not take is no outage. */
  tryForMs: 30_000,
  /** For so long whoever has waited for an answer asks for it once more, however late. */
  lastTryMs: 5_000,
  /** Runs that it broke again and again are given back more slowly: this often four times as long. */
  slowings: 2
} as const

// How whoever waits for an answer reads what there is of it.
//
// What he waits for was begun before. Told of an outage he would begin it again, so
// he waits through it, but not for ever: behind his own time he is told what is
// known, by a database, too, that neither answers nor breaks. Reads alone go
// through here, for they are left behind.

/**
 * Makes the way in which somebody reads who waits so long from now.
 *
 * **Details** It breaks like one of a database that is away where no answer came half a minute behind that time; a program that stood
 * still until then asks once more all the same. Whoever does not wait tries once.
 */
export const makeWaitBudget = Effect.fnUntraced(function* (waitMs: number) {
  const endMs = (yield* Clock.currentTimeMillis) + waitMs + outageLimits.tryForMs
  return <A, E, R>(read: Effect.Effect<A, E, R>): Effect.Effect<A, E, R> =>
    Effect.flatMap(Clock.currentTimeMillis, (nowMs) =>
      Effect.timeoutOrElse(waitMs > 0 ? retryDuringOutages(leavable(read)) : leavable(read), {
        duration: Math.max(outageLimits.lastTryMs, endMs - nowMs),
        orElse: () => Effect.die(unanswered)
      })
    )
})

/** Lets whoever is interrupted go at once: a transaction ends first when PostgreSQL has answered. */
const leavable = <A, E, R>(read: Effect.Effect<A, E, R>): Effect.Effect<A, E, R> =>
  Effect.uninterruptibleMask((restore) =>
    Effect.flatMap(Effect.forkDetach(read, { startImmediately: true }), (fiber) =>
      Effect.onInterrupt(restore(Fiber.join(fiber)), () => Effect.sync(() => fiber.interruptUnsafe()))
    )
  )

const unanswered = new SqlError.SqlError({
  reason: new SqlError.ConnectionError({
    cause: new Error("No answer came in time"),
    message: "PostgreSQL answers nothing for as long as anybody waits",
    operation: "query"
  })
})
