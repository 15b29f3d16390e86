/**
 * How often the log is told that the database is away, and what else is counted that breaks.
 */
import { expect, it } from "@effect/vitest"
import { Clock, Effect, Exit, Fiber, Logger, Metric } from "effect"
import { PrometheusMetrics } from "effect/observability"
import { SqlError } from "effect/sql"
import { TestClock } from "effect/testing"
import { keptLines } from "../../testing/kept-lines.ts"
import { share, survive } from "./notifier.ts"
import { nothingTold, Outage, tellBack, retryDuringOutages } from "./outages.ts"

const away = Effect.die(
  new SqlError.SqlError({
    reason: new SqlError.ConnectionError({ cause: new Error("refused"), operation: "connect" })
  })
)

it.effect(
  "once for all loops, each minute again while it lasts, and when it is over; other faults each time",
  () =>
    Effect.gen(function* () {
      const { codes, logger, said } = keptLines()
      const seconds = (count: number) =>
        Effect.forEach(["Worker", "Releaser"], (name) => survive(name, away, undefined)).pipe(
          Effect.andThen(TestClock.adjust("1 second")),
          Effect.repeat({ times: count - 1 })
        )
      yield* Effect.gen(function* () {
        yield* tellBack
        yield* seconds(59)
        expect(codes).toEqual(["databaseAway"])
        yield* seconds(2)
        expect(codes).toEqual(["databaseAway", "databaseAway"])
        yield* survive("Worker", Effect.die(new Error("broken")), undefined)
        yield* tellBack
        yield* tellBack
      }).pipe(Effect.provide(Logger.layer([logger])), Effect.provideService(Outage, nothingTold()))
      expect(codes.slice(2)).toEqual([undefined, "databaseBack"])
      expect(said[2]).toContain("Worker")
    })
)

it.effect.each([
  { tryMs: 0, lastMs: 30_000, tries: 31 },
  { tryMs: 5_000, lastMs: 25_000, tries: 6 },
  { tryMs: 90_000, lastMs: 1_000, tries: 2 }
])(
  "what matters is tried again for half a minute, and once more behind it, where a try takes $tryMs ms",
  ({ lastMs, tries, tryMs }) =>
    Effect.gen(function* () {
      const triedAt: Array<number> = []
      const trying = Effect.gen(function* () {
        triedAt.push(yield* Clock.currentTimeMillis)
        yield* Effect.delay(away, tryMs)
      })
      const fiber = yield* Effect.forkChild(retryDuringOutages(trying))
      yield* TestClock.adjust("10 minutes")
      expect(Exit.isFailure(yield* Fiber.await(fiber))).toBe(true)
      expect(triedAt).toHaveLength(tries)
      expect((triedAt.at(-1) ?? 0) - (triedAt[0] ?? 0)).toBe(tryMs + lastMs)
    }).pipe(Effect.provide(Logger.layer([])), Effect.provideService(Outage, nothingTold()))
)

it.effect("counts what breaks by the loop's name without whose it is, and no outage", () =>
  Effect.gen(function* () {
    const broken = Effect.die(new Error("broken"))
    yield* Effect.gen(function* () {
      yield* share("Worker", "of ada", broken)
      yield* share("Worker", "of bob", broken)
      yield* share("Releaser", "of ada", away)
    }).pipe(Effect.provide(Logger.layer([])), Effect.provideService(Outage, nothingTold()))
    const told = (yield* PrometheusMetrics.format()).split("\n")
    expect(told.filter((line) => line.startsWith("tropism_loop_faults"))).toEqual([
      'tropism_loop_faults_total{loop="Worker"} 2'
    ])
  }).pipe(Effect.provideService(Metric.MetricRegistry, new Map()))
)
