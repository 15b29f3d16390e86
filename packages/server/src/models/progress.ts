/**
 * Progress of an attempt: its heartbeat asks whether there was any, whoever works for the attempt notes it.
 *
 * A part of an answer, an event that is kept and a tool at work are progress. Noting
 * one costs an assignment and no write: the heartbeat alone carries it to the row.
 */
import { Clock, Context, Effect } from "effect"

export interface Progress {
  /** Something has come. */
  readonly note: () => void
  /** Counts as progress while it takes, for at most so long. */
  readonly during: <A, E, R>(effect: Effect.Effect<A, E, R>, mostMs: number) => Effect.Effect<A, E, R>
  /**
   * Looks, and answers for how long nothing has come, as the looks have seen it.
   *
   * **Details** Between two looks at most `mostMs` count: a program that stood still for longer saw nothing because of that.
   */
  readonly look: (nowMs: number, mostMs: number) => number
}

/** `begun` is called when something comes for the first time. */
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

/** Of the attempt at work; outside any nobody asks. */
export class CurrentProgress extends Context.Reference<Progress>("@tropism/server/model/CurrentProgress", {
  defaultValue: () => makeProgress()
}) {}
