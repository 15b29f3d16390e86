/**
 * Runs the programs of PostgreSQL under the account chosen for them.
 *
 * Effect's ChildProcess cannot change the account of a child, so this one file
 * calls Node's spawn. A child gets a bare environment (no `PG*` variable of
 * the person at the terminal reaches it) and the root folder as its working
 * folder, because the account may be barred from ours.
 */
import { type ChildProcess, spawn } from "node:child_process"
import * as fs from "node:fs"
import { Deferred, Effect } from "effect"
import { databaseLimits } from "../limits.ts"
import { type DatabaseUnavailable, unavailable } from "./database-unavailable.ts"
import type { PostgresAccount } from "./postgres-account.ts"

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
