/**
 * Tracks the progress of an attempt, for its heartbeat.
 *
 * An answer part, a stored event and a running tool are progress. Recording it is an assignment, not a write: only the heartbeat writes the
 * row.
 */
import { Clock, Context, Effect } from "effect"

export interface Progress {
  /** Records progress. */
  readonly note: () => void
  /** Counts as progress while the effect runs, for at most `mostMs`. */
  readonly during: <A, E, R>(effect: Effect.Effect<A, E, R>, mostMs: number) => Effect.Effect<A, E, R>
  /**
   * Returns for how long there was no progress, as far as the calls of this function observed it.
   *
   * The time between two calls counts for at most `mostMs`: a process that was frozen for longer could not see any.
   */
  readonly look: (nowMs: number, mostMs: number) => number
}

/** `begun` is called at the first progress. */
export const makeProgress = (begun: () => void = () => undefined): Progress => {
  let isMade = true
  let hasBegun = false
  const busy = new Set<{ readonly untilMs: number }>()
  let quietMs = 0
  let lookedAtMs: number | undefined
  return {
    note: () => {
      isMade = true
      if (hasBegun) return
      hasBegun = true
      begun()
    },
    during: (effect, mostMs) =>
      Effect.acquireUseRelease(
        Effect.map(Clock.currentTimeMillis, (nowMs) => {
          const work = { untilMs: nowMs + mostMs }
          busy.add(work)
          return work
        }),
        () => effect,
        (work) =>
          Effect.sync(() => {
            busy.delete(work)
            isMade = true
          })
      ),
    look: (nowMs, mostMs) => {
      const sinceMs = Math.min(mostMs, Math.max(0, nowMs - (lookedAtMs ?? nowMs)))
      const isBusy = [...busy].some(({ untilMs }) => nowMs < untilMs)
      quietMs = isMade || isBusy ? 0 : quietMs + sinceMs
      isMade = false
      lookedAtMs = nowMs
      return quietMs
    }
  }
}

/** The progress of the current attempt; outside any it is ignored. */
export class CurrentProgress extends Context.Reference<Progress>("@tropism/server/model/CurrentProgress", {
  defaultValue: () => makeProgress()
}) {}
