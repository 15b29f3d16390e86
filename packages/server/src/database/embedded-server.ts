/**
 * Runs PostgreSQL on the cluster of a data folder, for as long as the scope lasts.
 *
 * A server that outlived a killed program is used again; otherwise one is
 * started. Either is ended with the scope, and nothing else ever is: a process
 * is ours only when it runs on our cluster and takes our password. The caller
 * holds the data folder, so nobody else starts one meanwhile.
 */
import { createServer } from "node:net"
import { Data, Effect, type FileSystem, Option, type Path, Ref, Schedule, type Scope } from "effect"
import { databaseLimits } from "../limits.ts"
import { type DatabaseUnavailable, diskFull, saysDiskFull, unavailable } from "./database-unavailable.ts"
import { adminRole } from "./embedded-cluster.ts"
import { endBeforeExit } from "./lasting.ts"
import { connect, errorText, localUrl } from "./postgres-access.ts"
import type { PostgresAccount } from "./postgres-account.ts"
import { cutLog, keepLogShort, wordsSince } from "./postgres-log.ts"
import { startProgram } from "./postgres-process.ts"
import type { PostgresPrograms } from "./postgres-programs.ts"
import { isAlive } from "./os-processes.ts"
import {
  disownStalePidFile,
  findPostmaster,
  type Postmaster,
  stopPostmaster,
  waitUntilReady
} from "./postmaster.ts"

export interface ServerOptions {
  readonly cluster: string
  readonly account: PostgresAccount
  readonly programs: PostgresPrograms
  readonly adminPassword: string
  readonly preferredPort: number
  readonly logFile: string
  /** PostgreSQL settings that replace ours, by name. */
  readonly settings: Readonly<Record<string, string>>
}

export interface Server {
  readonly pid: number
  readonly port: number
  /** Whether it was running already. */
  readonly reattached: boolean
}

/** A start failed for a reason that another attempt may not meet. */
class StartAgain extends Data.TaggedError("StartAgain")<{ readonly problem: DatabaseUnavailable }> {}

const settings = (options: ServerOptions, port: number): Readonly<Record<string, string>> => ({
  listen_addresses: "127.0.0.1",
  port: String(port),
  // A socket's path may be too long under a deep data folder; the port serves as well.
  unix_socket_directories: "",
  max_connections: String(databaseLimits.connections),
  shared_buffers: `${databaseLimits.sharedBuffersMegabytes}MB`,
  max_wal_size: `${databaseLimits.walMaxMegabytes}MB`,
  // A young project grows from nothing to thousands of rows in a minute, and plans made for none are bad ones.
  autovacuum_naptime: `${databaseLimits.autovacuumIntervalSeconds}s`,
  // Tables that grow are looked at often, so each look is a short one.
  default_statistics_target: String(databaseLimits.statisticsTarget),
  timezone: "UTC",
  log_timezone: "UTC",
  // Short statements only: compiling them costs more than it saves.
  jit: "off",
  log_checkpoints: "off",
  ...options.settings
})

const serverWords = (options: ServerOptions, port: number): ReadonlyArray<string> => [
  "-D",
  options.cluster,
  ...Object.entries(settings(options, port)).flatMap(([name, value]) => ["-c", `${name}=${value}`])
]

/** Logs in to the server and makes sure that it serves our cluster. */
const recognise = Effect.fnUntraced(function* (options: ServerOptions, postmaster: Postmaster) {
  const url = localUrl({
    role: adminRole,
    password: options.adminPassword,
    port: postmaster.port,
    database: "postgres"
  })
  const strange = (said: string) =>
    unavailable(
      "clusterForeign",
      `The PostgreSQL (process ${postmaster.pid}) that runs on ${options.cluster} is not the one that database.json describes (${said}): end it, or restore database.json, and start again.`
    )
  const folder = yield* Effect.flatMap(connect(url), (connection) =>
    connection.queryValues("select current_setting('data_directory')")
  ).pipe(
    Effect.scoped,
    Effect.map(([row]) => String(row?.[0])),
    Effect.mapError((error) => strange(errorText(error)))
  )
  if (folder !== options.cluster) return yield* strange(`it serves ${folder}`)
})

const ready = Effect.fnUntraced(function* (options: ServerOptions, pid: number) {
  const outcome = yield* waitUntilReady(options.cluster, pid)
  if (Option.isSome(outcome)) return outcome.value
  return yield* unavailable(
    "startFailed",
    `PostgreSQL (process ${pid}) on ${options.cluster} was not ready in time; its log is ${options.logFile}. If it is still recovering, let it end that and start again.`
  )
})

const listens = (port: number) =>
  Effect.callback<Option.Option<number>>((resume) => {
    const probe = createServer()
    probe.once("error", () => resume(Effect.succeed(Option.none())))
    probe.listen(port, "127.0.0.1", () => {
      const address = probe.address()
      const taken =
        typeof address === "object" && address !== null ? Option.some(address.port) : Option.none()
      probe.close(() => resume(Effect.succeed(taken)))
    })
  })

/** The preferred port if it is free, else one that the system gives. */
const freePort = Effect.fnUntraced(function* (preferred: number) {
  const first = yield* listens(preferred)
  const port = Option.isSome(first) ? first : yield* listens(0)
  if (Option.isSome(port)) return port.value
  return yield* unavailable(
    "portTaken",
    "No port of 127.0.0.1 is free for PostgreSQL: allow this program to listen there, or set DATABASE_URL."
  )
})

const startProblem = (options: ServerOptions, words: string): DatabaseUnavailable | StartAgain => {
  if (saysDiskFull(words)) return diskFull(options.cluster)
  const problem = unavailable(
    "startFailed",
    `PostgreSQL did not start on ${options.cluster}: mend what it complains about and start again; its log is ${options.logFile}.\n${words}`
  )
  // Another program took the port, or the children of a killed server have not ended yet.
  const passing =
    /could not bind|Address already in use|pre-existing shared memory|lock file .* already exists/
  return passing.test(words) ? new StartAgain({ problem }) : problem
}

const start = Effect.fnUntraced(function* (options: ServerOptions, held: Ref.Ref<Option.Option<number>>) {
  yield* disownStalePidFile(options.cluster)
  const port = yield* freePort(options.preferredPort)
  yield* cutLog(options.logFile)
  const words = yield* wordsSince(options.logFile)
  const { pid } = yield* startProgram(
    {
      file: options.programs.postgres,
      arguments: serverWords(options, port),
      account: options.account
    },
    options.logFile
  ).pipe(
    Effect.tap((running) => Ref.set(held, Option.some(running.pid))),
    // From its first moment the process is known to the finalizer.
    Effect.uninterruptible
  )
  const outcome = yield* ready(options, pid)
  if (outcome === "ended") return yield* startProblem(options, yield* words)
  yield* recognise(options, outcome)
  const server: Server = { pid, port: outcome.port, reattached: false }
  return server
})

const attachOrStart = Effect.fnUntraced(function* (
  options: ServerOptions,
  held: Ref.Ref<Option.Option<number>>
) {
  const running = yield* findPostmaster(options.cluster)
  if (Option.isSome(running)) {
    const outcome = yield* ready(options, running.value.pid)
    if (outcome !== "ended") {
      yield* recognise(options, outcome)
      yield* Ref.set(held, Option.some(outcome.pid))
      const server: Server = { pid: outcome.pid, port: outcome.port, reattached: true }
      return server
    }
  }
  return yield* start(options, held)
})

/** Answers a server that takes logins; it ends with the scope. */
export const runServer = Effect.fn("runServer")(function* (
  options: ServerOptions
): Effect.fn.Return<Server, DatabaseUnavailable, FileSystem.FileSystem | Path.Path | Scope.Scope> {
  const held = yield* Ref.make(Option.none<number>())
  const isEnding = yield* Ref.make(false)
  const stop = (inOrderMs: number) =>
    Ref.set(isEnding, true).pipe(
      Effect.andThen(Ref.get(held)),
      Effect.flatMap(
        Option.match({
          onNone: () => Effect.void,
          onSome: (pid) => stopPostmaster(options.cluster, pid, inOrderMs)
        })
      )
    )
  const context = yield* Effect.context<FileSystem.FileSystem | Path.Path>()
  // In the list for as long as it may run: what was added first is taken out last.
  yield* endBeforeExit(Effect.provide(stop(databaseLimits.stopAtOnceTimeoutMs), context))
  yield* Effect.addFinalizer(() => stop(databaseLimits.stopTimeoutMs))
  const server = yield* untilReady(options, held)
  yield* Effect.forkScoped(keepLogShort(options.logFile))
  yield* Effect.forkScoped(keepAlive({ ...options, preferredPort: server.port }, held, isEnding))
  return server
})

const untilReady = (options: ServerOptions, held: Ref.Ref<Option.Option<number>>) =>
  attachOrStart(options, held).pipe(
    Effect.retry({
      while: (error) => error._tag === "StartAgain",
      times: databaseLimits.startAttempts - 1,
      schedule: Schedule.spaced(databaseLimits.startRetryDelayMs)
    }),
    Effect.catchTag("StartAgain", (error) => Effect.fail(error.problem))
  )

/**
 * Starts PostgreSQL again, on the same port, when it ended without being asked to.
 *
 * The pools connect anew by themselves; what was not committed is gone, as after any crash.
 */
const keepAlive = (
  options: ServerOptions,
  held: Ref.Ref<Option.Option<number>>,
  isEnding: Ref.Ref<boolean>
) =>
  Effect.gen(function* () {
    yield* Effect.sleep(databaseLimits.aliveCheckIntervalMs)
    const pid = yield* Ref.get(held)
    if (Option.isNone(pid) || (yield* isAlive(pid.value)) || (yield* Ref.get(isEnding))) return
    yield* Effect.logWarning("PostgreSQL has ended unexpectedly and is started again")
    yield* untilReady(options, held).pipe(
      Effect.catch((problem) => Effect.logError("PostgreSQL could not be started again", problem.message))
    )
  }).pipe(Effect.forever)
