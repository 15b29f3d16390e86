/**
 * Says in the log that the database is away: once, then seldom, and when it is back.
 *
 * Flow: graph → **outbox** → dispatch → run → tool → task
 *
 * Every loop of a server finds it out by itself, again and again, and one cause
 * is told once for all of them. What breaks for another reason is told each time.
 * That it is back says the lookout alone: of all loops it is the one that always asks.
 */
import { Cause, Clock, Context, Effect } from "effect"
import { isBrokenByAway } from "../database/database-away.ts"
import { outageLimits } from "./outage-limits.ts"

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
export const tellAway = Effect.fnUntraced(function* (cause: unknown) {
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
export const tellingOutages = <A, E, R>(
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
      yield* tellAway(Cause.squash(cause))
      yield* Effect.interruptible(Effect.sleep(outageLimits.retryMs))
      return yield* tellingOutages(effect, sinceMs)
    })
  )

/** The same for what does nothing a second time. */
export const throughOutages = <A, E, R>(effect: Effect.Effect<A, E, R>): Effect.Effect<A, E, R> =>
  Effect.map(tellingOutages(effect), ({ value }) => value)

/** Tells that it is back, where it was told that it is away. */
export const tellBack = Effect.flatMap(Outage, (telling) => {
  if (!telling.isAway) return Effect.void
  telling.isAway = false
  return Effect.logWarning("The database answers again", { code: "databaseBack" })
})
