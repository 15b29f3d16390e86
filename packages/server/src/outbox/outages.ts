/**
 * Logs a database outage: once, then seldom, and when it is over.
 *
 * Every loop notices the outage repeatedly, and one cause is logged once for all. Other failures are logged each time. Only the work poller
 * logs the end: it is the loop that always queries.
 */
import { Cause, Clock, Context, Effect, Fiber } from "effect"
import { SqlError } from "effect/sql"
import { isBrokenByAway } from "../database/connection-errors.ts"

/** What was logged last. */
interface Telling {
  isAway: boolean
  awayAtMs: number
}

export const nothingTold = (): Telling => ({ isAway: false, awayAtMs: -Infinity })

/** One per server; a process that starts several provides one to each. */
export class Outage extends Context.Reference<Telling>("@tropism/server/outbox/Outage", {
  defaultValue: nothingTold
}) {}

/** Logs that the database is away, unless that was logged a moment ago. */
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
 * Repeats an effect during a database outage, up to a time limit, and logs the outage.
 *
 * A failed effect may still have committed, if only its answer was lost. An interrupt waits for an attempt but not for a pause. Every pause
 * is followed by an attempt, however late: a process that was frozen meanwhile tries once more before it gives up.
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

/** The same for an effect that does nothing the second time. */
export const retryDuringOutages = <A, E, R>(effect: Effect.Effect<A, E, R>): Effect.Effect<A, E, R> =>
  Effect.map(reportingOutages(effect), ({ value }) => value)

/** Logs that the database is back, if the outage was logged. */
export const tellBack = Effect.flatMap(Outage, (telling) => {
  if (!telling.isAway) return Effect.void
  telling.isAway = false
  return Effect.logWarning("The database answers again", { code: "databaseBack" })
})

// Limits of an outage: how it is logged, and how important work is retried.

export const outageLimits = {
  /** Between two log lines about it. */
  tellIntervalMs: 60_000,
  /** Between attempts of important writes: heartbeats, and paid model answers. */
  retryMs: 1_000,
  /** Total time for retries; if the database answers others meanwhile, a refused write is no outage. */
  tryForMs: 30_000,
  /** Time of the final read for a caller who has waited for an answer, however late. */
  lastTryMs: 5_000,
  /** Runs that it interrupts repeatedly are returned to the queue more slowly: the delay quadruples this many times. */
  slowings: 2
} as const

// Reads an answer for a waiting caller, during outages too.
//
// The work began earlier. A caller who got an error would start it again, so the read waits through an outage, up to the caller's own time
// limit; then the caller gets what is known, even if the database neither answers nor fails. For reads only, because they may be abandoned.

/**
 * Creates the reader for a caller who waits this long from now.
 *
 * It fails as with a database that is away if no answer came half a minute after that time; a process that was frozen until then tries once
 * more. A caller who does not wait gets one attempt.
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

/** Lets an interrupt return at once: a transaction otherwise ends only when PostgreSQL has answered. */
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
