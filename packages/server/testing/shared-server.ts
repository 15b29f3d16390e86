/**
 * One running server for the stories of a file, each in a project of its own.
 *
 * `layer(SharedServer.layer)` gives the server the test's clock: it stands still
 * until a story moves it, so a model that takes a minute is held for exactly as
 * long as the story wants. With `excludeTestServices` the server keeps real time.
 */
import { Clock, Context, Effect, Layer, Logger, Redacted, References } from "effect"
import { TestClock } from "effect/testing"
import type { PostgresAccess } from "../src/database/postgres-access.ts"
import { freshDatabase } from "./fresh-database.ts"
import { type Doors, eventually, newProject, startServer } from "./platform.ts"

/** One line of the server's log. */
export interface LogLine {
  readonly level: string
  readonly message: unknown
  /** The request in which it was logged; null outside any. */
  readonly requestId: unknown
}

export class SharedServer extends Context.Service<
  SharedServer,
  {
    readonly doors: Doors
    readonly access: PostgresAccess
    /** What the server has logged so far. */
    readonly log: ReadonlyArray<LogLine>
  }
>()("@tropism/server/testing/SharedServer") {
  static readonly layer = Layer.effect(
    SharedServer,
    Effect.gen(function* () {
      const access = yield* patientDatabase
      const log: Array<LogLine> = []
      const keep = Logger.make<unknown, void>(({ fiber, logLevel, message }) => {
        const { requestId = null } = fiber.getRef(References.CurrentLogAnnotations)
        log.push({ level: logLevel, message, requestId })
      })
      const doors = yield* startServer(access, [keep])
      return SharedServer.of({ doors, access, log })
    })
  )
}

/** A fresh database for a server that has the test's clock, which is set to the present. */
export const patientDatabase = Effect.suspend(() =>
  Effect.andThen(setToNow, Effect.map(freshDatabase, withPatience))
)

/** Lets the server connect as long as it takes: a clock that goes on in steps would run out for a socket that opens. */
const withPatience = (access: PostgresAccess): PostgresAccess => {
  const url = new URL(Redacted.value(access.serverUrl))
  url.searchParams.set("connect_timeout", "0")
  return { ...access, serverUrl: Redacted.make(url.toString()) }
}

/** Sets a test's clock to the time that the database has; a schedule would be due for decades else. */
const setToNow = Effect.flatMap(Clock.Clock, (clock) =>
  "setTime" in clock ? TestClock.setTime(Clock.Clock.defaultValue().currentTimeMillisUnsafe()) : Effect.void
)

/** A project of one's own in the file's server. */
export const newStoryHere = Effect.flatMap(SharedServer, ({ doors, access }) => newProject(doors, access))

/** Lets the server's clock go on for so long, in steps between which the server does what is due, and a story what it wants to. */
export const passing = (ms: number, stepMs: number, between: Effect.Effect<unknown> = Effect.void) =>
  TestClock.testClockWith((clock) => {
    const endMs = clock.currentTimeMillisUnsafe() + ms
    const nowMs = Effect.andThen(between, Effect.sync(clock.currentTimeMillisUnsafe))
    return Effect.asVoid(asTimePasses(stepMs, nowMs, (now) => now >= endMs))
  })

/**
 * Looks again and again while the server's clock goes on in steps, until what is seen satisfies.
 *
 * **Gotchas** One step would not do: whoever begins to wait after it waits for the next one.
 */
export const asTimePasses = <A>(
  stepMs: number,
  look: Effect.Effect<A>,
  satisfies: (seen: A) => boolean
): Effect.Effect<A> =>
  TestClock.testClockWith((clock) =>
    eventually(Effect.andThen(clock.adjust(stepMs), look), satisfies, 30_000, [15, 15])
  )
