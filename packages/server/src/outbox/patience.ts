/**
 * How whoever waits for an answer reads what there is of it.
 *
 * Flow: graph → **outbox** → dispatch → run → tool → task
 *
 * What he waits for was begun before. Told of an outage he would begin it again, so
 * he waits through it, but not for ever: behind his own time he is told what is
 * known, by a database, too, that neither answers nor breaks. Reads alone go
 * through here, for they are left behind.
 */
import { Clock, Effect, Fiber } from "effect"
import { SqlError } from "effect/sql"
import { outageLimits } from "./outage-limits.ts"
import { throughOutages } from "./outages.ts"

/**
 * Makes the way in which somebody reads who waits so long from now.
 *
 * **Details** It breaks like one of a database that is away where no answer came half a minute behind that time; a program that stood
 * still until then asks once more all the same. Whoever does not wait tries once.
 */
export const makePatience = Effect.fnUntraced(function* (waitMs: number) {
  const endMs = (yield* Clock.currentTimeMillis) + waitMs + outageLimits.tryForMs
  return <A, E, R>(read: Effect.Effect<A, E, R>): Effect.Effect<A, E, R> =>
    Effect.flatMap(Clock.currentTimeMillis, (nowMs) =>
      Effect.timeoutOrElse(waitMs > 0 ? throughOutages(leavable(read)) : leavable(read), {
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
