/**
 * How a sweep goes on, and what it says of it.
 */
import { expect, it } from "@effect/vitest"
import { Effect, Logger, Metric } from "effect"
import { PrometheusMetrics } from "effect/observability"
import { TestClock } from "effect/testing"
import { atIntervals, every } from "./sweeps.ts"

it.effect("says that it failed and goes on, and says nothing of being ended", () =>
  Effect.gen(function* () {
    const said: Array<unknown> = []
    const ends = [Effect.die(new Error("broken")), Effect.interrupt, Effect.succeed(0), Effect.succeed(2)]
    const sweep = Effect.suspend(() => ends.shift() ?? Effect.never)
    const logger = Logger.make<unknown, void>(({ message }) => void said.push(message))
    yield* every("The sweep", 1_000, sweep, (count) => Effect.logInfo(`${count} swept`)).pipe(
      Effect.provide(Logger.layer([logger])),
      Effect.forkChild
    )
    yield* TestClock.adjust("10 seconds")
    expect(ends).toEqual([])
    expect(said.flat()).toEqual([expect.stringContaining("The sweep"), "2 swept"])
    expect(yield* PrometheusMetrics.format()).toContain('tropism_loop_faults_total{loop="The sweep"} 1\n')
  }).pipe(Effect.provideService(Metric.MetricRegistry, new Map()))
)

it.effect("begins, each of them, though none of the others ever ends", () =>
  Effect.gen(function* () {
    const begun = new Set<string>()
    const sweep = (name: string) =>
      Effect.as(
        Effect.sync(() => void begun.add(name)),
        0
      )
    const all = {
      abandonStuck: sweep("abandonStuck"),
      forgetOld: sweep("forgetOld"),
      forgetContexts: sweep("forgetContexts"),
      forgetKeys: sweep("forgetKeys"),
      forgetTokens: sweep("forgetTokens"),
      followSwitches: sweep("followSwitches"),
      expireTasks: sweep("expireTasks"),
      cancelResting: sweep("cancelResting"),
      letGoParked: sweep("letGoParked"),
      failOverdueCalls: sweep("failOverdueCalls"),
      endSessions: sweep("endSessions")
    }
    yield* Effect.forkChild(atIntervals(all))
    yield* TestClock.adjust("1 second")
    expect([...begun].toSorted()).toEqual(Object.keys(all).toSorted())
  })
)
