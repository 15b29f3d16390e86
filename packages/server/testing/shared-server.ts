/**
 * The running server that the stories of a worker share, each in a project of its own.
 *
 * A worker keeps one server per kind of clock and passes it from file to file. `layer(SharedServer.layer)` gives the
 * server a test clock: it stands still until a story moves it, so a model that takes a minute is held for exactly as
 * long as the story wants. With `excludeTestServices` the server keeps real time. `SharedServer.own` starts a server
 * for one file: for what concerns the server as a whole, or a configuration of its own.
 */
import { Clock, Context, Effect, Exit, Layer, Logger, Redacted, References, Scope } from "effect"
import { TestClock } from "effect/testing"
import type { PostgresAccess } from "../src/database/postgres-access.ts"
import { freshDatabase } from "./fresh-database.ts"
import { ask } from "./owner-rows.ts"
import { type Doors, eventually, newProject, startServer, type Story } from "./platform.ts"

/** One line of the server's log. */
export interface LogLine {
  readonly level: string
  readonly message: unknown
  /** The request in which it was logged; null outside any. */
  readonly requestId: unknown
}

export interface Running {
  readonly doors: Doors
  readonly access: PostgresAccess
  /** Where log lines go: a file that takes over a server starts an empty one. */
  log: Array<LogLine>
}

/** A server that a worker keeps from file to file; it ends with the run's PostgreSQL. */
interface Kept extends Running {
  readonly clock: Clock.Clock
  readonly scope: Scope.Closeable
}

export class SharedServer extends Context.Service<
  SharedServer,
  {
    readonly doors: Doors
    readonly access: PostgresAccess
    /** What the server has logged since this file has it. */
    readonly log: ReadonlyArray<LogLine>
    /** Makes a project of one's own. */
    readonly newStory: Effect.Effect<Story>
  }
>()("@tropism/server/testing/SharedServer") {
  /** The worker's server with this kind of clock. When the file ends, the agents of its projects are stopped. */
  static readonly layer: Layer.Layer<SharedServer> = Layer.effectContext(
    Effect.gen(function* () {
      const server = yield* keptServer("setTime" in (yield* Clock.Clock) ? "test" : "real")
      server.log = []
      yield* Effect.addFinalizer(() => stopAgents(server))
      return Context.make(SharedServer, shared(server)).pipe(Context.add(Clock.Clock, server.clock))
    })
  )

  /** A server for this file alone, on the clock and with the configuration that it runs with. */
  static readonly own = Layer.effect(
    SharedServer,
    Effect.map(
      Effect.suspend(() => startRunning()),
      (server) => shared(server)
    )
  )
}

const shared = (server: Running): SharedServer["Service"] => ({
  doors: server.doors,
  access: server.access,
  log: server.log,
  newStory: newProject(server.doors, server.access)
})

/** The servers of this worker, by the kind of their clock. */
const kept = new Map<"real" | "test", Kept>()

/** A server whose clock is ahead of the database's is not passed on: what is due in a database's future stays due. */
const keptServer = Effect.fnUntraced(function* (kind: "real" | "test") {
  const now = Clock.Clock.defaultValue()
  const before = kept.get(kind)
  if (before !== undefined) {
    const aheadMs = before.clock.currentTimeMillisUnsafe() - now.currentTimeMillisUnsafe()
    if (aheadMs <= 0) {
      yield* Effect.provideService(setToNow, Clock.Clock, before.clock)
      return before
    }
    kept.delete(kind)
    yield* Scope.close(before.scope, Exit.void)
  }
  const scope = yield* Scope.make()
  const clock = kind === "test" ? yield* TestClock.make() : now
  const running = yield* startRunning().pipe(
    Effect.provideService(Scope.Scope, scope),
    Effect.provideService(Clock.Clock, clock)
  )
  const made: Kept = Object.assign(running, { clock, scope })
  kept.set(kind, made)
  return made
})

/** Starts a server on a database of its own, until the scope ends. */
export const startRunning = Effect.fnUntraced(function* (
  consoleFolder?: string
): Effect.fn.Return<Running, never, Scope.Scope> {
  const access = yield* patientDatabase
  const keep = Logger.make<unknown, void>(({ fiber, logLevel, message }) => {
    const { requestId = null } = fiber.getRef(References.CurrentLogAnnotations)
    running.log.push({ level: logLevel, message, requestId })
  })
  const log: Array<LogLine> = []
  const running: Running = { access, log, doors: yield* startServer(access, [keep], consoleFolder) }
  return running
})

/** Stops the agents of every project so far: a run that waits for its model would keep a slot from later files. */
export const stopAgents = Effect.fnUntraced(function* ({ access, doors }: Running) {
  const going = yield* ask(
    access,
    "select id from kb.projects where id not in (select project_id from kb.kill_switches where project_id is not null)"
  )
  const stop = { stopped: true, reason: "The stories of this project have ended" }
  for (const [projectId] of going) {
    const { body, status } = yield* doors.send("PUT", `/api/projects/${projectId}/kill-switch`, stop)
    if (status !== 200)
      return yield* Effect.die(new Error(`A project went on: ${status} ${JSON.stringify(body)}`))
  }
})

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

/**
 * Sets a test's clock to the time that the database has; a schedule would be due for decades else.
 *
 * **Gotchas** Never back: what sleeps in a server that shares the clock would wait until it has caught up.
 */
const setToNow = Effect.flatMap(Clock.Clock, (clock) => {
  const nowMs = Clock.Clock.defaultValue().currentTimeMillisUnsafe()
  return "setTime" in clock && clock.currentTimeMillisUnsafe() < nowMs
    ? TestClock.setTime(nowMs)
    : Effect.void
})

/** A project of one's own in the shared server. */
export const newStoryHere = Effect.flatMap(SharedServer, ({ newStory }) => newStory)

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
