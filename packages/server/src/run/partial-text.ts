/**
 * What a model has said of an answer that is not complete, kept while it speaks.
 *
 * Flow: graph → outbox → dispatch → **run** → tool → task
 *
 * Whoever ends the run from outside, on this server or another, finds the text in
 * the run's row. An attempt that lets its run rest knows what it heard itself: what
 * one before it had heard is asked for again, and is no summary. The first piece is
 * kept almost at once and the rest at intervals; an answer that is complete by then
 * is never written here, because the step is that keeps it.
 */
import { Effect, Queue } from "effect"
import { runLimits } from "../limits.ts"

export const makePartialText = Effect.fnUntraced(function* <E>(
  write: (text: string) => Effect.Effect<void, E>
) {
  let text = ""
  let kept = ""
  const grown = yield* Queue.sliding<void>(1)

  const keepNow = Effect.suspend(() => {
    const next = text
    if (next === kept) return Effect.void
    return write(next).pipe(
      Effect.andThen(
        Effect.sync(() => {
          kept = next
        })
      ),
      // Nothing but what is shown meanwhile depends on it: the request goes on, and the text is kept the next time.
      Effect.catchDefect((defect) =>
        Effect.map(
          Effect.logDebug("The text of an answer that still comes could not be kept", defect),
          () => {
            Queue.offerUnsafe(grown, undefined)
          }
        )
      )
    )
  })

  /** Keeps what was heard, for ever; fails when nobody wants the answer any more, and outlives a database that is away. */
  const keep: Effect.Effect<never, E> = Queue.take(grown).pipe(
    Effect.andThen(Effect.sleep(runLimits.partialTextDelayMs)),
    Effect.andThen(Effect.uninterruptible(keepNow)),
    // The whole is written each time: a long text less often, so that nobody writes more in a second for it.
    Effect.andThen(
      Effect.suspend(() => Effect.sleep(intervalMs(kept.length) - runLimits.partialTextDelayMs))
    ),
    Effect.forever
  )

  return {
    /** Takes the whole text so far. */
    heard: (whole: string): void => {
      text = whole
      Queue.offerUnsafe(grown, undefined)
    },
    text: (): string => text,
    keep
  }
})

const intervalMs = (chars: number): number =>
  runLimits.partialTextIntervalMs * Math.max(1, chars / runLimits.partialTextChars)
