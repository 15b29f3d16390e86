/**
 * For tests over the wire: a clock on which pauses take no time.
 *
 * A retry's pause ends at once and is written down; the watchers of an attempt,
 * which wait for minutes, never wake. So real sockets can be tested without
 * sleeping. Not for production.
 */
import { Clock, Duration, Effect } from "effect"

const longestPauseMs = 100_000

export interface FakeClock {
  readonly clock: Clock.Clock
  readonly pausesMs: ReadonlyArray<number>
}

/** Makes a clock that stands still at the given time. */
export const makeFakeClock = (nowMs = 0): FakeClock => {
  const pausesMs: Array<number> = []
  return {
    pausesMs,
    clock: {
      currentTimeMillisUnsafe: () => nowMs,
      currentTimeMillis: Effect.succeed(nowMs),
      currentTimeNanosUnsafe: () => BigInt(nowMs) * 1_000_000n,
      currentTimeNanos: Effect.succeed(BigInt(nowMs) * 1_000_000n),
      monotonicTimeNanosUnsafe: () => BigInt(nowMs) * 1_000_000n,
      monotonicTimeNanos: Effect.succeed(BigInt(nowMs) * 1_000_000n),
      sleep: (duration) => {
        const pauseMs = Duration.toMillis(duration)
        if (pauseMs > longestPauseMs) return Effect.never
        return Effect.sync(() => void pausesMs.push(pauseMs))
      }
    }
  }
}
