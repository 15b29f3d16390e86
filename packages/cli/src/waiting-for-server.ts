/**
 * Waits for a server that does not do now what it is asked: one that is started anew, is not ready yet, or has too much to do.
 *
 * Only what has no second effect is asked again here. A command's first question
 * finds out whether there is a server at all: one that is not there is told of at
 * once, for nobody has started it.
 */
import { failureSentence, isUnreachable, pauseAskedMsOf, statusOf } from "@tropism/client/failure-sentence"
import { Clock, Effect } from "effect"
import { limits } from "./limits.ts"
import { notice } from "./notice.ts"

/** Asks again for as long as no server does what it is asked: one that is started anew goes on with what was told. */
export const whenAnswered = <A, E, R>(question: Effect.Effect<A, E, R>): Effect.Effect<A, E, R> =>
  Effect.catch(question, (error) =>
    isForLater(error)
      ? Effect.andThen(Effect.sleep(pauseMsAfter(error)), whenAnswered(question))
      : Effect.fail(error)
  )

/** Asks as a command begins: a server that says that it cannot answer now is asked again, within a bound. */
export const whenReady = <A, E, R>(url: string, question: Effect.Effect<A, E, R>) =>
  Effect.catch(question, (error) =>
    isUnreachable(error) || !isForLater(error)
      ? Effect.fail(error)
      : Effect.gen(function* () {
          const untilMs = (yield* Clock.currentTimeMillis) + limits.readyWaitMs
          yield* notice(`${failureSentence(error)} Waiting for the server at ${url} …`)
          return yield* askedUntil(untilMs, question, error)
        })
  )

/** Asks again until an instant, behind an answer that was for later; what is told then is the last answer. */
const askedUntil = <A, E, R>(
  untilMs: number,
  question: Effect.Effect<A, E, R>,
  error: E
): Effect.Effect<A, E, R> =>
  Effect.gen(function* () {
    const pauseMs = pauseMsAfter(error)
    if ((yield* Clock.currentTimeMillis) + pauseMs > untilMs) return yield* Effect.fail(error)
    yield* Effect.sleep(pauseMs)
    return yield* Effect.catch(question, (newer) =>
      isForLater(newer) ? askedUntil(untilMs, question, newer) : Effect.fail(newer)
    )
  })

const pauseMsAfter = (error: unknown): number => Math.max(pauseAskedMsOf(error) ?? 0, limits.runPollIdleMs)

/** Whether nobody is there, or what is there is not ready, or has too much to do. */
const isForLater = (error: unknown): boolean =>
  isUnreachable(error) || [429, 502, 503, 504].includes(statusOf(error) ?? 0)
