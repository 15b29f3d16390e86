/**
 * Gives up connections of which nothing will be heard any more.
 *
 * Flow: graph → outbox → dispatch → run → tool → task, all on **database**
 *
 * The machine behind a connection can lose its power, and a firewall can forget
 * the connection: nobody closes it then, and the system would send anew for a
 * quarter of an hour. Statements may take long, so no clock tells such a
 * connection from one at work; PostgreSQL does, over a connection of its own. If
 * it works on nothing of this server's, what waits for an answer waits for nothing.
 */
import { PgConnection } from "@effect/sql-pg"
import { Clock, type Context, Effect, Fiber, type Redacted } from "effect"
import { SqlError } from "effect/sql"
import { databaseLimits } from "../limits.ts"
import { poolLimits } from "./pool-limits.ts"

/** One connection, as whoever watches it sees it. */
interface Watched {
  /** Who waits for an answer, by how a statement is told that none will come. */
  readonly waiting: Set<() => void>
  /** When something was heard of it last, or asked anew. */
  sinceMs: number
  /** The silence that was found before, by when it began. */
  foundMs: number | undefined
  isGivenUp: boolean
  /** Takes it out of use. */
  readonly leave: Effect.Effect<void>
}

export interface SilenceLimits {
  /** How long nothing is heard before PostgreSQL is asked. */
  readonly silentMs: number
  readonly silenceLookMs: number
}

export interface SilentConnections {
  /** Watches a connection, and answers what each of its statements goes through: one that will not be answered fails. */
  readonly watch: (
    leave: Effect.Effect<void>
  ) => <A>(statement: Effect.Effect<A, SqlError.SqlError>) => Effect.Effect<A, SqlError.SqlError>
}

/** Watches connections until the scope ends; `name` is what they are called in `pg_stat_activity`. */
export const watchSilence = Effect.fn("watchSilence")(function* (options: {
  readonly url: Redacted.Redacted
  readonly name: string
  readonly limits?: SilenceLimits | undefined
}) {
  const clock = yield* Clock.Clock
  const { silenceLookMs, silentMs } = options.limits ?? poolLimits
  /** All that were ever lent and are there. */
  const connections = new Set<WeakRef<Watched>>()

  const present = () => {
    const there: Array<Watched> = []
    for (const reference of connections) {
      const one = reference.deref()
      if (one === undefined) connections.delete(reference)
      else there.push(one)
    }
    return there
  }

  const look = Effect.gen(function* () {
    const isSilent = (one: Watched) =>
      one.waiting.size > 0 && clock.currentTimeMillisUnsafe() - one.sinceMs >= silentMs
    const before = present().filter(isSilent)
    if (before.length === 0 || (yield* worksForUs(options, silentMs / 2))) return
    const now = before.filter(isSilent)
    const lost = now.filter(({ foundMs, sinceMs }) => foundMs === sinceMs)
    for (const one of now) one.foundMs = one.sinceMs
    if (lost.length === 0) return
    yield* Effect.logWarning(
      `${lost.length} of this server's connections to PostgreSQL fell silent, and it works on nothing that was sent over them: they are given up`
    )
    // Those that nobody asks anything would be the next to say nothing: they go before anybody can ask them.
    const sinceMs = Math.min(...lost.map((one) => one.sinceMs))
    const quiet = present().filter((one) => one.waiting.size === 0 && one.sinceMs <= sinceMs)
    yield* Effect.forEach([...quiet, ...lost], ({ leave }) => leave, { discard: true })
    for (const one of lost) {
      one.isGivenUp = true
      for (const tell of one.waiting) tell()
    }
  })

  yield* look.pipe(
    // Whoever cannot be asked now is asked again.
    Effect.ignoreCause,
    Effect.andThen(Effect.sleep(silenceLookMs)),
    Effect.forever,
    Effect.forkScoped
  )

  const watch: SilentConnections["watch"] = (leave) => {
    const now = () => clock.currentTimeMillisUnsafe()
    const one: Watched = { waiting: new Set(), sinceMs: now(), foundMs: undefined, isGivenUp: false, leave }
    connections.add(new WeakRef(one))
    // A race of two fibers would cost several times as much, at each statement.
    return <A>(statement: Effect.Effect<A, SqlError.SqlError>) =>
      Effect.contextWith((context: Context.Context<never>) =>
        Effect.callback<A, SqlError.SqlError>((resume) => {
          if (one.isGivenUp) return resume(Effect.fail(silent))
          if (one.waiting.size === 0) one.sinceMs = now()
          const tell = () => resume(Effect.fail(silent))
          one.waiting.add(tell)
          const asking = Effect.runForkWith(context)(statement)
          asking.addObserver((exit) => {
            one.waiting.delete(tell)
            one.sinceMs = now()
            resume(exit)
          })
          return Fiber.interrupt(asking)
        })
      )
  }
  return { watch } satisfies SilentConnections
})

/** Tells, over a connection of its own, whether PostgreSQL works on something that this server asked a while ago. */
const worksForUs = (
  { name, url }: { readonly url: Redacted.Redacted; readonly name: string },
  sinceMs: number
): Effect.Effect<boolean, SqlError.SqlError> =>
  PgConnection.make({
    url,
    connectTimeout: databaseLimits.connectTimeoutMs,
    applicationName: "tropism silence"
  }).pipe(
    Effect.flatMap((connection) => connection.queryValues(working, [name, sinceMs])),
    Effect.map(([row]) => row?.[0] !== false),
    Effect.scoped,
    Effect.timeoutOrElse({
      duration: databaseLimits.connectTimeoutMs,
      orElse: () => Effect.succeed(true)
    })
  )

/** What waits for this server, to be asked or to be read from, is no work. Where PostgreSQL keeps no account of it, nobody can tell. */
const working = `select current_setting('track_activities') = 'off' or exists (
  select from pg_stat_activity
  where application_name = $1 and state = 'active' and wait_event_type is distinct from 'Client'
    and query_start < clock_timestamp() - $2 * interval '1 millisecond'
)`

const silent = new SqlError.SqlError({
  reason: new SqlError.ConnectionError({
    cause: new Error("Nothing was heard of it"),
    message: "A connection to PostgreSQL fell silent",
    operation: "query"
  })
})
