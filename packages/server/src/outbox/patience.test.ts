/**
 * How long whoever waits reads, by a clock that stands still where it is not moved.
 */
import { describe, expect, it } from "@effect/vitest"
import { Effect, Fiber } from "effect"
import { TestClock } from "effect/testing"
import { outageLimits, makeWaitBudget } from "./outages.ts"

/** What the database answers in a while. */
const answering = (ms: number) => Effect.as(Effect.sleep(ms), "an answer")

describe("Whoever waits for an answer", () => {
  it.effect("is told what there is also behind his time, where his program stood still until then", () =>
    Effect.gen(function* () {
      const patiently = yield* makeWaitBudget(1_000)
      yield* TestClock.adjust(600_000)
      const told = yield* Effect.forkChild(patiently(answering(outageLimits.lastTryMs - 1)))
      yield* TestClock.adjust(outageLimits.lastTryMs)
      expect(yield* Fiber.join(told)).toBe("an answer")
    })
  )

  it.effect("is left to himself behind his time by a database that says nothing", () =>
    Effect.gen(function* () {
      const patiently = yield* makeWaitBudget(1_000)
      const told = yield* Effect.forkChild(Effect.exit(patiently(Effect.never)))
      yield* TestClock.adjust(1_000 + outageLimits.tryForMs - 1)
      expect(told.pollUnsafe()).toBeUndefined()
      yield* TestClock.adjust(1)
      expect(yield* Fiber.join(told)).toMatchObject({ _tag: "Failure" })
    })
  )
})
