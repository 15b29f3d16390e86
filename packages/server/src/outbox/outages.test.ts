/**
 * How often the log is told that the database is away.
 */
import { expect, it } from "@effect/vitest"
import { Effect, Logger } from "effect"
import { SqlError } from "effect/sql"
import { TestClock } from "effect/testing"
import { nothingTold, Outage, tellBack } from "./outages.ts"
import { survive } from "./wake-ups.ts"

const away = Effect.die(
  new SqlError.SqlError({
    reason: new SqlError.ConnectionError({ cause: new Error("refused"), operation: "connect" })
  })
)

it.effect(
  "once for all loops, each minute again while it lasts, and when it is over; other faults each time",
  () =>
    Effect.gen(function* () {
      const said: Array<unknown> = []
      const logger = Logger.make<unknown, void>(({ message }) => void said.push([message].flat()[0]))
      const outage = "The database does not answer: whatever the server does by itself waits for it"
      const seconds = (count: number) =>
        Effect.forEach(["Worker", "Releaser"], (name) => survive(name, away, undefined)).pipe(
          Effect.andThen(TestClock.adjust("1 second")),
          Effect.repeat({ times: count - 1 })
        )
      yield* Effect.gen(function* () {
        yield* tellBack
        yield* seconds(59)
        expect(said).toEqual([outage])
        yield* seconds(2)
        expect(said).toEqual([outage, outage])
        yield* survive("Worker", Effect.die(new Error("broken")), undefined)
        yield* tellBack
        yield* tellBack
      }).pipe(Effect.provide(Logger.layer([logger])), Effect.provideService(Outage, nothingTold()))
      expect(said.slice(2)).toEqual(["Worker failed and will try again", "The database answers again"])
    })
)
