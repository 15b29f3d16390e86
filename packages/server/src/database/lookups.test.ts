/**
 * Proves that look-ups are shared, read after they were asked for, and hold up nobody.
 */
import { expect, it } from "@effect/vitest"
import { Deferred, Effect, Exit, Fiber, Latch } from "effect"
import { TestClock } from "effect/testing"
import { makeLookups } from "./group-commit.ts"
import { poolLimits } from "./limits.ts"

/** Look-ups in a table that changes, and what was asked; the first waits until the gate is open. */
const make = Effect.gen(function* () {
  const table = new Map([["a", 1]])
  const asked: Array<ReadonlyArray<string>> = []
  const gate = yield* Latch.make(false)
  const begun = yield* Deferred.make<void>()
  const find = yield* makeLookups((keys) =>
    Effect.sync(() => {
      asked.push(keys)
      return new Map(table)
    }).pipe(
      Effect.tap(() => Deferred.succeed(begun, undefined)),
      Effect.tap(() => (asked.length === 1 ? gate.await : Effect.void)),
      Effect.tap(() => (keys.includes("bad") ? Effect.die(new Error("broken")) : Effect.void))
    )
  )
  const first = yield* Effect.forkChild(find("a"), { startImmediately: true })
  yield* Deferred.await(begun)
  return { asked, find, first, gate, table }
})

it.effect("what is asked while a look-up is under way is asked together after it, and read afresh", () =>
  Effect.gen(function* () {
    const { asked, find, first, gate, table } = yield* make
    table.set("a", 2).set("b", 3)
    const others = yield* Effect.forEach(["a", "b", "a", "c"], (key) =>
      Effect.forkChild(find(key), { startImmediately: true })
    )
    yield* gate.open
    expect(yield* Fiber.join(first)).toBe(1)
    expect(yield* Effect.forEach(others, Fiber.join)).toEqual([2, 3, 2, undefined])
    expect(asked).toEqual([["a"], ["a", "b", "c"]])
  })
)

it.effect("a look-up that does not come back holds up nobody who asks later", () =>
  Effect.gen(function* () {
    const { asked, find, first } = yield* make
    const later = yield* Effect.forkChild(find("a"), { startImmediately: true })
    yield* TestClock.adjust(poolLimits.lookupWaitMs)
    expect(yield* Fiber.join(later)).toBe(1)
    expect(first.pollUnsafe()).toBeUndefined()
    expect(asked).toEqual([["a"], ["a"]])
  })
)

it.effect("one that breaks breaks for those who asked in it, and for nobody after them", () =>
  Effect.gen(function* () {
    const { find, gate } = yield* make
    yield* gate.open
    expect(Exit.isFailure(yield* Effect.exit(find("bad")))).toBe(true)
    expect(yield* find("a")).toBe(1)
  })
)

it.effect("whoever goes away takes nobody else's answer with them", () =>
  Effect.gen(function* () {
    const { find, first, gate } = yield* make
    const gone = yield* Effect.forkChild(find("a"), { startImmediately: true })
    const there = yield* Effect.forkChild(find("a"), { startImmediately: true })
    yield* Fiber.interrupt(gone)
    yield* Fiber.interrupt(first)
    yield* gate.open
    expect(yield* Fiber.join(there)).toBe(1)
  })
)
