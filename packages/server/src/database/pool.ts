/**
 * The connection pool, whose connections pipeline several statements in one write.
 *
 * PostgreSQL answers statements in order and aborts a transaction at the first failure, so statements that need no earlier answer are sent
 * without waiting. A transaction starts this way with its project and its first statement. The price: a running statement is not cancelled
 * when its caller is interrupted; its answer is awaited and dropped.
 */
import { PgClient, PgConnection, PgPool } from "@effect/sql-pg"
import { Context, Effect, Fiber, Layer, Option, type Redacted, Stream, String as Text, Clock } from "effect"
import { Reactivity } from "effect/reactivity"
import { SqlClient, type SqlConnection, SqlError, Statement } from "effect/sql"
import { databaseLimits } from "../limits.ts"
import {
  checkCommit,
  KeptPlans,
  LockWaitMs,
  type PlanMode,
  ProjectTransaction,
  StatementsTogether
} from "./database.ts"
import { poolLimits, dumpLimits } from "./limits.ts"

/**
 * A pool that logs in as the server's own role; column names arrive in camelCase, JSON unchanged.
 *
 * PostgreSQL aborts an idle transaction after a while: a frozen server would otherwise hold its locks, and others would wait for it.
 */
export const poolLayer = (options: {
  readonly url: Redacted.Redacted
  readonly startupParameters: Readonly<Record<string, string>>
  /** The connections' name, by which a server counts its own. */
  readonly name?: string
  /** When a silent connection is closed, if it differs from `poolLimits`. */
  readonly silence?: SilenceLimits
}) =>
  Layer.effectContext(
    Effect.gen(function* () {
      const name = options.name ?? "tropism"
      const { watch } = yield* watchSilence({ url: options.url, name, limits: options.silence })
      const pool = yield* PgPool.make({
        url: options.url,
        startupParameters: {
          idle_in_transaction_session_timeout: String(poolLimits.idleTransactionMs),
          ...goneClients,
          ...options.startupParameters
        },
        applicationName: name,
        keepAlive: poolLimits.keepAliveMs,
        maxConnections: poolLimits.connections,
        maxMessageSize: dumpLimits.messageMaxBytes,
        preparedStatementCacheSize: poolLimits.preparedStatements,
        multiplex: true,
        multiplexConcurrency: 1
      })
      const wrapped = new WeakMap<PgConnection.PgConnection, SqlConnection.Connection>()
      /** The same wrapper for a connection each time it is acquired. */
      const connectionOf = (connection: PgConnection.PgConnection): SqlConnection.Connection => {
        const known = wrapped.get(connection) ?? wrap(connection, watch(pool.invalidate(connection)))
        wrapped.set(connection, known)
        return known
      }
      const acquirer = Effect.map(pool.get, connectionOf)
      const sql = yield* SqlClient.make({
        acquirer,
        transactionAcquirer: acquirer,
        borrower: (f) => pool.use((connection) => f(connectionOf(connection))),
        compiler: PgClient.makeCompiler(undefined, false),
        driver: "pg",
        prepareTransactionControls: true,
        releaseSavepoint: (name) => `RELEASE SAVEPOINT ${name}`,
        commit: (connection) => Effect.flatMap(connection.executeRaw("COMMIT", []), checkCommit),
        spanAttributes: [["db.system.name", "postgresql"]],
        transformRows: Statement.defaultTransforms(Text.snakeToCamel, false).array
      })
      return Context.make(SqlClient.SqlClient, sql).pipe(
        Context.add(StatementsTogether, poolLimits.statementsTogether)
      )
    })
  ).pipe(Layer.provide(Reactivity.layer))

/** Makes PostgreSQL close the session of a vanished server soon: it holds locks and one of few connections. */
export const goneClients = {
  tcp_keepalives_idle: String(poolLimits.keepAliveMs / 1_000),
  tcp_keepalives_interval: "5",
  tcp_keepalives_count: "4",
  tcp_user_timeout: "30000"
} as const

type Execute = SqlConnection.Connection["execute"]

type Beginning = Effect.Effect<unknown, SqlError.SqlError>

/**
 * Makes a connection's transactions start with the project, the lock timeout and the plan mode of their caller.
 *
 * `together` is the number of statements that the connection pipelines, `lockWaitMs` is 0 for an unlimited lock wait, and `start` states
 * whether the next statement waits for the begin.
 */
export const beginningWithProject =
  (
    execute: Execute,
    together: number,
    lockWaitMs: number,
    start: (beginning: Beginning) => Beginning = (beginning) => beginning
  ): Execute =>
  (text, params, transform) =>
    /^begin\b/i.test(text)
      ? Effect.gen(function* () {
          const transaction = yield* Effect.serviceOption(ProjectTransaction)
          const setting = settings[yield* KeptPlans]
          const begin = execute(text, params, undefined)
          const beginning = Option.isNone(transaction)
            ? begin
            : Effect.all(
                [
                  begin,
                  execute(
                    setting,
                    [transaction.value.projectId, String((yield* LockWaitMs) ?? lockWaitMs)],
                    undefined
                  )
                ],
                {
                  concurrency: together
                }
              )
          yield* start(beginning)
          return []
        })
      : execute(text, params, transform)

const setProject = "select set_config('tropism.project', $1, true), set_config('lock_timeout', $2, true)"
const keepPlans = `${setProject}, set_config('plan_cache_mode', 'force_generic_plan', true)`
const setByKeys = `${keepPlans}, set_config('enable_hashjoin', 'off', true), set_config('enable_mergejoin', 'off', true), set_config('enable_seqscan', 'off', true)`
const settings: Readonly<Record<PlanMode, string>> = { own: setProject, kept: keepPlans, byKeys: setByKeys }

const wrap = (
  connection: PgConnection.PgConnection,
  answered: ReturnType<SilentConnections["watch"]>
): SqlConnection.Connection => {
  const query = (text: string, params: ReadonlyArray<unknown>, prepare?: boolean) =>
    answered(connection.query(text, params, prepare))
  const queryValues = (text: string, params: ReadonlyArray<unknown>, prepare?: boolean) =>
    answered(connection.queryValues(text, params, prepare))
  const rows =
    (prepare: boolean): Execute =>
    (text, params, transform) =>
      Effect.map(query(text, params, prepare), (result) =>
        transform === undefined ? result.rows : transform(result.rows)
      )
  const { beginAfresh, begun, beginAtOnce } = makeBeginnings()
  const { lockWaitMs, statementsTogether } = poolLimits
  return {
    execute: beginningWithProject(rows(true), statementsTogether, lockWaitMs, beginAtOnce),
    executeUnprepared: beginningWithProject(rows(false), statementsTogether, lockWaitMs, beginAfresh),
    executeRaw: (text, params) =>
      text === "COMMIT"
        ? Effect.flatMap(query(text, params), (result) => Effect.as(begun, result))
        : query(text, params),
    executeValues: (text, params) => queryValues(text, params),
    executeValuesUnprepared: (text, params) => queryValues(text, params, false),
    executeStream: () => Stream.die(new Error("No stage of the server streams rows"))
  }
}

/**
 * Starts the transactions of one connection.
 *
 * The first statement is sent together with the BEGIN, and PostgreSQL answers in order, so nothing waits for the BEGIN's answer. If the
 * BEGIN failed, no row of a project is read or written, and the commit fails.
 */
const makeBeginnings = () => {
  let last: Beginning = Effect.void
  return {
    beginAtOnce: (beginning: Beginning): Beginning =>
      Effect.map(Effect.forkDetach(Effect.exit(beginning), { startImmediately: true }), (fiber) => {
        last = Effect.flatten(Fiber.join(fiber))
      }),
    beginAfresh: (beginning: Beginning): Beginning => {
      last = Effect.void
      return beginning
    },
    /** Fails if the last BEGIN failed. */
    begun: Effect.suspend(() => last)
  }
}

// Closes connections that will never answer.
//
// The machine at the other end can lose its power, and a firewall can drop the connection: neither closes it, and the system would
// retransmit for a quarter of an hour. Statements may take long, so no timeout tells such a connection from a busy one; PostgreSQL does,
// over a separate connection. If it is running nothing for this server, no answer will come.

/** A watched connection. */
interface Watched {
  /** The waiting statements, each as a callback that fails it. */
  readonly waiting: Set<() => void>
  /** When it last answered, or was last queried after a pause. */
  sinceMs: number
  /** The start of the silence that the last check found. */
  foundMs: number | undefined
  isGivenUp: boolean
  /** Removes it from the pool. */
  readonly leave: Effect.Effect<void>
}

interface SilenceLimits {
  /** The silence after which PostgreSQL is queried. */
  readonly silentMs: number
  readonly silenceLookMs: number
}

interface SilentConnections {
  /** Watches a connection, and returns a wrapper for its statements: one that will get no answer fails. */
  readonly watch: (
    leave: Effect.Effect<void>
  ) => <A>(statement: Effect.Effect<A, SqlError.SqlError>) => Effect.Effect<A, SqlError.SqlError>
}

/** Watches connections until the scope ends; `name` is their name in `pg_stat_activity`. */
const watchSilence = Effect.fn("watchSilence")(function* (options: {
  readonly url: Redacted.Redacted
  readonly name: string
  readonly limits?: SilenceLimits | undefined
}) {
  const clock = yield* Clock.Clock
  const { silenceLookMs, silentMs } = options.limits ?? poolLimits
  /** All connections that were acquired and still exist. */
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
    // Idle ones would be silent at their next statement, so they are removed first.
    const sinceMs = Math.min(...lost.map((one) => one.sinceMs))
    const quiet = present().filter((one) => one.waiting.size === 0 && one.sinceMs <= sinceMs)
    yield* Effect.forEach([...quiet, ...lost], ({ leave }) => leave, { discard: true })
    for (const one of lost) {
      one.isGivenUp = true
      for (const tell of one.waiting) tell()
    }
  })

  yield* look.pipe(
    // If the query fails, the next check repeats it.
    Effect.ignoreCause,
    Effect.andThen(Effect.sleep(silenceLookMs)),
    Effect.forever,
    Effect.forkScoped
  )

  const watch: SilentConnections["watch"] = (leave) => {
    const now = () => clock.currentTimeMillisUnsafe()
    const one: Watched = { waiting: new Set(), sinceMs: now(), foundMs: undefined, isGivenUp: false, leave }
    connections.add(new WeakRef(one))
    // A race of two fibers would cost several times as much, for each statement.
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

/** Queries, over a separate connection, whether PostgreSQL is running an older statement for this server. */
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

/** A backend that waits for this server, to send or to receive, is not working. Where `track_activities` is off, nothing is known. */
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
