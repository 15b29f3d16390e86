/**
 * Which timers hold what they would call.
 */
import { heapStats } from "bun:jsc"
import { describe, expect, it } from "@effect/vitest"
import { Effect } from "effect"
import { leaveOutLongTimers, longTimerMs } from "./long-timers.ts"

/** How many timers are kept, each with all that it would call. */
const kept = (): number => heapStats().protectedObjectTypeCounts["Timeout"] ?? 0

/** By how much more are kept after a timer was set, which is cleared again. */
const keptOf = (ms: number): number => {
  const before = kept()
  const timer = setTimeout(() => {}, ms)
  const more = kept() - before
  clearTimeout(timer)
  return more
}

describe("Timers of the wall's clock", () => {
  it.effect("are kept in a simulation unless none of them could ring before it ends", () =>
    Effect.gen(function* () {
      yield* leaveOutLongTimers
      expect(keptOf(longTimerMs)).toBe(0)
      expect(keptOf(longTimerMs - 1)).toBe(1)
    })
  )

  it.effect("are all kept again after it", () =>
    Effect.gen(function* () {
      yield* Effect.scoped(leaveOutLongTimers)
      expect(keptOf(longTimerMs)).toBe(1)
    })
  )
})
