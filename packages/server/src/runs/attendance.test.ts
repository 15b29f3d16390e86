/**
 * When a server can say that it had a hand for every run, and when it begins to count anew.
 */
import { describe, expect, it } from "@effect/vitest"
import { Effect } from "effect"
import { TestClock } from "effect/testing"
import { runLimits } from "../limits.ts"
import { WorkerLiveness } from "./liveness.ts"

const { attendanceGapMs: gapMs, stuckAfterMs } = runLimits

const isLasting = Effect.flatMap(WorkerLiveness, ({ hasLasted }) => hasLasted(stuckAfterMs))

/** Rounds that follow one another closely for so long, the last of them now. */
const rounds = (ms: number, wereAllAsked = true) =>
  Effect.flatMap(WorkerLiveness, ({ note }) =>
    Effect.andThen(TestClock.adjust(gapMs), note(wereAllAsked)).pipe(Effect.repeat({ times: ms / gapMs - 1 }))
  )

const noteNow = Effect.flatMap(WorkerLiveness, ({ note }) => note(true))

describe("A server has had a hand for every run", () => {
  it.effect("when it was there for so long, and neither at its start nor while it does not look", () =>
    Effect.gen(function* () {
      expect(yield* isLasting).toBe(false)
      yield* TestClock.adjust(2 * stuckAfterMs)
      expect(yield* isLasting).toBe(false)
      yield* noteNow
      yield* rounds(stuckAfterMs - gapMs)
      expect(yield* isLasting).toBe(false)
      yield* rounds(gapMs)
      expect(yield* isLasting).toBe(true)
      yield* TestClock.adjust(gapMs + 1)
      expect(yield* isLasting).toBe(false)
    }).pipe(Effect.provide(WorkerLiveness.layer))
  )

  it.effect("and begins anew where it stood still, or had no hand for one of them", () =>
    Effect.gen(function* () {
      yield* noteNow
      yield* rounds(stuckAfterMs)
      yield* TestClock.adjust(stuckAfterMs)
      yield* noteNow
      expect(yield* isLasting).toBe(false)
      yield* rounds(stuckAfterMs)
      expect(yield* isLasting).toBe(true)
      yield* rounds(gapMs, false)
      expect(yield* isLasting).toBe(false)
      yield* rounds(stuckAfterMs)
      expect(yield* isLasting).toBe(false)
      yield* rounds(gapMs)
      expect(yield* isLasting).toBe(true)
    }).pipe(Effect.provide(WorkerLiveness.layer))
  )
})
