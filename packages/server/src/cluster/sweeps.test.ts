/**
 * How a sweep goes on, and what it says of it.
 */
import { expect, it } from "@effect/vitest"
import { Effect, Logger } from "effect"
import { TestClock } from "effect/testing"
import { every } from "./sweeps.ts"

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
    expect(said.flat()).toEqual(["The sweep failed and will try again", "2 swept"])
  })
)
