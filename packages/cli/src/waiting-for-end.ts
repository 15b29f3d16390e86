/**
 * Waits for something that a server does by itself: a run, a backtest, a comparison.
 *
 * It belongs to the server and goes on without the command, so whatever ends the
 * waiting names it. The server may be started anew meanwhile.
 */
import { Effect } from "effect"
import type { Access } from "./access.ts"
import { failure, requestFailure, sayingAlso } from "./failure.ts"
import { limits } from "./limits.ts"
import { makeNotice } from "./notice.ts"

/** What is waited for. */
export interface Begun {
  /** As a sentence begins with it: `The run 0197…`. */
  readonly name: string
  /** What is typed to see it. */
  readonly shownBy: string
  /** Whether it went on no more when it was looked at last. */
  readonly isOver?: boolean
}

/** Says that it has begun. */
export const noticeBegun = ({ name, shownBy }: Begun) =>
  Effect.flatMap(makeNotice, (say) => say(`${name} has started: "${shownBy}" shows it.`))

/** What is asked of it, for as long as a command waits. */
export const withinWait = <A, E, R>(
  { connection }: Access,
  { isOver = false, name, shownBy }: Begun,
  asked: Effect.Effect<A, E, R>
) => {
  const whereabouts = `${name} ${isOver ? "was created" : "continues in the background"}: "${shownBy}" shows it.`
  return Effect.flatMap(makeNotice, (say) =>
    asked.pipe(
      Effect.mapError((error) => sayingAlso(requestFailure(error, connection.url), whereabouts)),
      Effect.timeoutOrElse({
        duration: limits.runWaitMs,
        orElse: () =>
          Effect.fail(
            failure(`${name} is still running and continues in the background. "${shownBy}" shows it.`)
          )
      }),
      Effect.onInterrupt(() => say(whereabouts))
    )
  )
}
