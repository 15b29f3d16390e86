/**
 * For how long nothing has come of an attempt, as its heartbeat sees it.
 */
import { describe, expect, it } from "@effect/vitest"
import { Deferred, Effect, Fiber } from "effect"
import { TestClock } from "effect/testing"
import { makeProgress } from "./progress.ts"

const mostMs = 20_000

describe("S000-R19 The progress of an attempt", () => {
  it("is counted from look to look, and from none where something has come since", () => {
    const { look, note } = makeProgress()
    expect([0, 10_000, 20_000, 30_000].map((nowMs) => look(nowMs, mostMs))).toEqual([
      0, 10_000, 20_000, 30_000
    ])
    note()
    expect([40_000, 50_000].map((nowMs) => look(nowMs, mostMs))).toEqual([0, 10_000])
  })

  it("is not missed while the program stands still, nor when its clock goes back", () => {
    const { look } = makeProgress()
    expect([0, 10_000, 610_000, 600_000].map((nowMs) => look(nowMs, mostMs))).toEqual([
      0, 10_000, 30_000, 30_000
    ])
  })

  it.effect("is made by a tool at work, as long as one may be", () =>
    Effect.gen(function* () {
      const { during, look } = makeProgress()
      const end = yield* Deferred.make<void>()
      look(0, mostMs)
      const call = yield* Effect.forkChild(during(Deferred.await(end), 600_000))
      yield* TestClock.adjust(1)
      expect([400_000, 599_999, 610_000, 620_000].map((nowMs) => look(nowMs, mostMs))).toEqual([
        0, 0, 10_001, 20_001
      ])
      yield* Deferred.succeed(end, undefined)
      yield* Fiber.join(call)
      expect([630_000, 640_000].map((nowMs) => look(nowMs, mostMs))).toEqual([0, 10_000])
    })
  )
})
