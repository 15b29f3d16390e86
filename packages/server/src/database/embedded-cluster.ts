/**
 * Creates the cluster, PostgreSQL's data directory, whole or not at all.
 *
 * It is built under a scratch name, flushed once and then renamed. A crashed first start leaves a scratch folder, which the next one
 * removes. The name is new each time, because the `initdb` of the crashed start may still be running and deletes its folder when it ends.
 */
import { createServer } from "node:net"
import { Effect, FileSystem, Option, Path, type PlatformError, Data, Ref, Schedule, type Scope } from "effect"
import { databaseLimits } from "../limits.ts"
import {
  type DatabaseUnavailable,
  diskFull,
  folderProblem,
  saysDiskFull,
  unavailable
} from "./database-unavailable.ts"
import { syncFolder, connect, errorText, localUrl } from "./postgres-access.ts"
import {
  type PostgresAccount,
  runProgram,
  type PostgresPrograms,
  endBeforeExit,
  startProgram,
  isAlive,
  commandLine,
  signal,
  lastWords
} from "./postgres-programs.ts"

/** The superuser of the embedded cluster; only this module logs in as it. */
export const adminRole = "postgres"

export interface NewCluster {
  readonly cluster: string
  readonly account: PostgresAccount
  readonly programs: PostgresPrograms
  readonly adminPassword: string
  /** False only for a cluster that is deleted after use. */
  readonly durable: boolean
}

const scratchPrefix = "postgres.partial-"

/** The owner of the cluster's files; none where there is no cluster. */
export const clusterOwner = Effect.fnUntraced(function* (cluster: string) {
  const fileSystem = yield* FileSystem.FileSystem
  const folder = yield* fileSystem.stat(cluster).pipe(Effect.option)
  return Option.flatMap(folder, ({ uid }) => uid)
})

/** Refuses a cluster of another PostgreSQL version. */
export const checkVersion = Effect.fn("checkVersion")(function* (
  cluster: string,
  programs: PostgresPrograms
): Effect.fn.Return<void, DatabaseUnavailable, FileSystem.FileSystem | Path.Path> {
  const fileSystem = yield* FileSystem.FileSystem
  const path = yield* Path.Path
  const text = yield* fileSystem
    .readFileString(path.join(cluster, "PG_VERSION"))
    .pipe(
      Effect.mapError(() =>
        unavailable(
          "clusterForeign",
          `The folder ${cluster} holds no PostgreSQL cluster: move it away, or set TROPISM_DATA to another folder.`
        )
      )
    )
  if (text.trim() === String(programs.version)) return
  return yield* unavailable(
    "clusterForeign",
    `The database in ${cluster} was made by PostgreSQL ${text.trim()} and this program brings ${programs.version}: export it with the program that made it, or set TROPISM_DATA to another folder.`
  )
})

const removeScratches = Effect.fnUntraced(function* (home: string) {
  const fileSystem = yield* FileSystem.FileSystem
  const path = yield* Path.Path
  const names = yield* fileSystem.readDirectory(home)
  for (const name of names.filter((each) => each.startsWith(scratchPrefix))) {
    // A folder that an orphaned `initdb` still writes to cannot be removed now; the next start removes it.
    yield* fileSystem.remove(path.join(home, name), { recursive: true, force: true }).pipe(Effect.ignore)
  }
})

const runInitdb = Effect.fnUntraced(function* (
  options: NewCluster,
  words: ReadonlyArray<string>
): Effect.fn.Return<void, DatabaseUnavailable> {
  const ended = yield* runProgram({
    file: options.programs.initdb,
    arguments: words,
    account: options.account
  }).pipe(
    Effect.timeoutOrElse({
      duration: databaseLimits.creationTimeoutMs,
      orElse: () => Effect.succeed({ exitCode: -1, lastWords: "it did not end in time" })
    })
  )
  if (ended.exitCode === 0) return
  if (saysDiskFull(ended.lastWords)) return yield* diskFull(options.cluster)
  return yield* unavailable(
    "creationFailed",
    `The database could not be created in ${options.cluster}: mend what PostgreSQL complains about and start again.\n${ended.lastWords}`
  )
})

const initdbWords = (data: string, passwordFile: string): ReadonlyArray<string> => [
  `--pgdata=${data}`,
  `--username=${adminRole}`,
  `--pwfile=${passwordFile}`,
  "--auth=scram-sha-256",
  "--encoding=UTF8",
  // The same collation and case rules on every machine, whatever its locales are.
  "--locale=C",
  "--locale-provider=builtin",
  "--builtin-locale=C.UTF-8",
  "--no-instructions",
  // Flushed once when complete; an incomplete one is deleted anyway.
  "--no-sync"
]

const build = Effect.fnUntraced(function* (options: NewCluster, scratch: string) {
  const fileSystem = yield* FileSystem.FileSystem
  const path = yield* Path.Path
  const data = path.join(scratch, "data")
  const passwordFile = path.join(scratch, "password")
  yield* fileSystem.writeFileString(passwordFile, options.adminPassword, { mode: 0o600 })
  if (options.account.foreign) {
    yield* fileSystem.chown(passwordFile, options.account.uid, options.account.gid)
    yield* fileSystem.chown(scratch, options.account.uid, options.account.gid)
  }
  yield* runInitdb(options, initdbWords(data, passwordFile))
  if (options.durable) yield* runInitdb(options, [`--pgdata=${data}`, "--sync-only"])
  return data
})

/** Creates the cluster at `options.cluster`, which must not exist. */
export const createCluster = Effect.fn("createCluster")(function* (
  options: NewCluster
): Effect.fn.Return<void, DatabaseUnavailable, FileSystem.FileSystem | Path.Path> {
  const fileSystem = yield* FileSystem.FileSystem
  const path = yield* Path.Path
  const home = path.dirname(options.cluster)
  const orFolderProblem = Effect.mapError((error: PlatformError.PlatformError | DatabaseUnavailable) =>
    error._tag === "PlatformError" ? folderProblem(home)(error) : error
  )
  yield* removeScratches(home).pipe(orFolderProblem)
  yield* Effect.acquireUseRelease(
    fileSystem.makeTempDirectory({ directory: home, prefix: scratchPrefix }),
    (scratch) =>
      Effect.gen(function* () {
        yield* fileSystem.rename(yield* build(options, scratch), options.cluster)
        yield* syncFolder(home)
      }),
    (scratch) => fileSystem.remove(scratch, { recursive: true, force: true }).pipe(Effect.ignore)
  ).pipe(orFolderProblem)
})

// Runs PostgreSQL on the cluster of a data folder until the scope ends.
//
// A server that outlived a killed program is reused; otherwise one is started. Either stops with the scope. **Invariant**: no other process
// is ever stopped: a process is ours only if it runs on our cluster and accepts our password. The caller has locked the data folder, so no
// other start runs meanwhile.

export interface ServerOptions {
  readonly cluster: string
  readonly account: PostgresAccount
  readonly programs: PostgresPrograms
  readonly adminPassword: string
  readonly preferredPort: number
  readonly logFile: string
  /** PostgreSQL settings that override ours, by name. */
  readonly settings: Readonly<Record<string, string>>
}

export interface Server {
  readonly pid: number
  readonly port: number
  /** Whether it was already running. */
  readonly reattached: boolean
}

/** A start failed for a reason that may be gone at the next attempt. */
class StartAgain extends Data.TaggedError("StartAgain")<{ readonly problem: DatabaseUnavailable }> {}

const settings = (options: ServerOptions, port: number): Readonly<Record<string, string>> => ({
  listen_addresses: "127.0.0.1",
  port: String(port),
  // A socket's path may be too long in a deep data folder; the port is enough.
  unix_socket_directories: "",
  max_connections: String(databaseLimits.connections),
  shared_buffers: `${databaseLimits.sharedBuffersMegabytes}MB`,
  max_wal_size: `${databaseLimits.walMaxMegabytes}MB`,
  // A new project grows from nothing to thousands of rows in a minute, and plans for empty tables are bad.
  autovacuum_naptime: `${databaseLimits.autovacuumIntervalSeconds}s`,
  // Growing tables are analyzed often, so each analysis must be short.
  default_statistics_target: String(databaseLimits.statisticsTarget),
  timezone: "UTC",
  log_timezone: "UTC",
  // All statements are short: compiling them costs more than it saves.
  jit: "off",
  log_checkpoints: "off",
  ...options.settings
})

const serverWords = (options: ServerOptions, port: number): ReadonlyArray<string> => [
  "-D",
  options.cluster,
  ...Object.entries(settings(options, port)).flatMap(([name, value]) => ["-c", `${name}=${value}`])
]

/** Logs in and checks that the server runs on our cluster. */
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

/** The preferred port if it is free, otherwise one chosen by the system. */
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
    // The finalizer must know the process from its first moment.
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

/** Starts or reuses a server and returns it once it accepts logins; it stops with the scope. */
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
  // Registered for as long as it may run: finalizers run in reverse order.
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
 * Restarts PostgreSQL on the same port after an unexpected exit.
 *
 * The pools reconnect by themselves; uncommitted work is lost, as after any crash.
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

// The PostgreSQL server of a cluster, according to its `postmaster.pid`.
//
// The file may be left over from a killed server, and its process id may belong to another program by now, so the process is checked before
// it is trusted, awaited or stopped. Nothing here deletes the file: PostgreSQL uses it to check whether orphans of the killed server still
// hold its shared memory.

interface Postmaster {
  readonly pid: number
  readonly port: number
  /** It accepts logins: it has recovered and is not stopping. */
  readonly ready: boolean
}

const pidFile = (cluster: string) => Effect.map(Path.Path, (path) => path.join(cluster, "postmaster.pid"))

/** The file's content, whatever the process is. */
const readPidFile = Effect.fnUntraced(function* (cluster: string) {
  const fileSystem = yield* FileSystem.FileSystem
  const text = yield* fileSystem.readFileString(yield* pidFile(cluster)).pipe(Effect.option)
  const [pid = "", , , port = "", , , , status = ""] = Option.getOrElse(text, () => "").split("\n")
  const postmaster = { pid: Number(pid), port: Number(port), ready: status.trim() === "ready" }
  // A file that is being written has fewer lines.
  return postmaster.pid > 0 ? Option.some(postmaster) : Option.none()
})

/** A PostgreSQL process belongs to this cluster unless its command line names another one. */
const runsOn = (cluster: string, words: ReadonlyArray<string>): boolean => {
  const folder = words.indexOf("-D")
  return (
    /(^|\/)(postgres|postmaster)$/.test(words[0] ?? "") && (folder === -1 || words[folder + 1] === cluster)
  )
}

/** The server that runs on `cluster` now, ready or not. */
export const findPostmaster = Effect.fn("findPostmaster")(function* (cluster: string) {
  const file = yield* readPidFile(cluster)
  if (Option.isNone(file) || !(yield* isAlive(file.value.pid))) return Option.none()
  const words = yield* commandLine(file.value.pid)
  return Option.exists(words, (each) => !runsOn(cluster, each)) ? Option.none() : file
})

/**
 * Allows PostgreSQL to start although a leftover file names a process that now belongs to another program.
 *
 * PostgreSQL would refuse, because that process is alive. With its own parent's id (this program's) in the file, it knows that the file is
 * stale and still checks the old server's shared memory.
 */
const disownStalePidFile = Effect.fn("disownStalePidFile")(function* (
  cluster: string
): Effect.fn.Return<void, DatabaseUnavailable, FileSystem.FileSystem | Path.Path> {
  const file = yield* readPidFile(cluster)
  if (Option.isNone(file) || !(yield* isAlive(file.value.pid))) return
  if (Option.isSome(yield* findPostmaster(cluster))) return
  const fileSystem = yield* FileSystem.FileSystem
  const name = yield* pidFile(cluster)
  yield* fileSystem.readFileString(name).pipe(
    Effect.flatMap((text) => fileSystem.writeFileString(name, text.replace(/^\d+/, String(process.pid)))),
    Effect.mapError(folderProblem(cluster))
  )
})

const poll = <A, E, R>(look: Effect.Effect<Option.Option<A>, E, R>, timeoutMs: number) =>
  look.pipe(
    Effect.repeat({
      until: Option.isSome,
      schedule: Schedule.spaced(databaseLimits.pollIntervalMs)
    }),
    Effect.timeoutOption(timeoutMs),
    Effect.map(Option.flatten)
  )

/** Waits until the server accepts logins or has ended; none if neither happened in time. */
const waitUntilReady = Effect.fn("waitUntilReady")(function* (cluster: string, pid: number) {
  const look = Effect.gen(function* () {
    if (!(yield* isAlive(pid))) return Option.some<Postmaster | "ended">("ended")
    return Option.filter(yield* readPidFile(cluster), (file) => file.pid === pid && file.ready)
  })
  return yield* poll(look, databaseLimits.startTimeoutMs)
})

const waitUntilGone = (pid: number, timeoutMs: number) =>
  poll(
    Effect.map(isAlive(pid), (alive) => (alive ? Option.none() : Option.some("gone"))),
    timeoutMs
  ).pipe(Effect.map(Option.isSome))

/**
 * Stops the server of `cluster` if it still has this process id, and waits for its end.
 *
 * It gets `inOrderMs` for an orderly shutdown; after that it ends as in a crash, and the next start recovers.
 */
export const stopPostmaster = Effect.fn("stopPostmaster")(function* (
  cluster: string,
  pid: number,
  inOrderMs: number
) {
  const running = yield* findPostmaster(cluster)
  if (!Option.exists(running, (each) => each.pid === pid)) return
  yield* signal(pid, "SIGINT")
  if (yield* waitUntilGone(pid, inOrderMs)) return
  yield* signal(pid, "SIGQUIT")
  if (yield* waitUntilGone(pid, databaseLimits.stopNowTimeoutMs)) return
  yield* Effect.logError(`PostgreSQL (process ${pid}) on ${cluster} does not end; end it by hand.`)
})

// The log of the embedded PostgreSQL: bounded on disk, and read for error messages.
//
// PostgreSQL appends to the file through a handle that outlives this program, so the file is truncated in place and never replaced: a
// renamed log would keep growing under its new name.

const size = (file: string) =>
  Effect.gen(function* () {
    const fileSystem = yield* FileSystem.FileSystem
    return Number((yield* fileSystem.stat(file)).size)
  }).pipe(Effect.orElseSucceed(() => 0))

/** Once the log is long, copies it to `….1` and truncates it. */
export const cutLog = Effect.fn("cutLog")(function* (file: string) {
  if ((yield* size(file)) <= databaseLimits.logMaxBytes) return
  const fileSystem = yield* FileSystem.FileSystem
  yield* fileSystem.copyFile(file, `${file}.1`).pipe(
    Effect.andThen(fileSystem.truncate(file)),
    // A log that cannot be truncated is no reason to stop; the next check tries again.
    Effect.catch((error) => Effect.logWarning(`The log ${file} could not be cut: ${error.message}`))
  )
})

/** Checks the log's length until interrupted. */
const keepLogShort = (file: string) =>
  cutLog(file).pipe(Effect.repeat(Schedule.spaced(databaseLimits.logCheckIntervalMs)))

/** Records the log's current end; the returned effect reads what was written since. */
export const wordsSince = Effect.fnUntraced(function* (file: string) {
  const before = yield* size(file)
  const fileSystem = yield* FileSystem.FileSystem
  return fileSystem.readFile(file).pipe(
    Effect.map((bytes) => lastWords(new TextDecoder().decode(bytes.subarray(before)))),
    Effect.orElseSucceed(() => "")
  )
})
