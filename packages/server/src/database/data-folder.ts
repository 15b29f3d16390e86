/**
 * Creates the data folder of a server with an external database, private because it holds secrets.
 *
 * `embedded-postgres.ts` creates the folder of an embedded PostgreSQL, which PostgreSQL's account may have to traverse.
 */
import * as fs from "node:fs"
import * as nodePath from "node:path"
import { dlopen, FFIType } from "bun:ffi"
import { Effect, FileSystem, Path, Clock, DateTime, Option, Schedule, Schema, type Scope } from "effect"
import { type DatabaseUnavailable, unavailable } from "./database-unavailable.ts"

/** Creates the folder with access for its owner only; an existing one stays as it is. */
export const makeDataFolder = Effect.fn("makeDataFolder")(function* (folder: string) {
  const fileSystem = yield* FileSystem.FileSystem
  const path = yield* Path.Path
  yield* fileSystem.makeDirectory(path.dirname(folder), { recursive: true })
  yield* Effect.catchReason(
    fileSystem.makeDirectory(folder, { mode: 0o700 }),
    "PlatformError",
    "AlreadyExists",
    () => Effect.void
  )
})

// Locks a data folder for one program at a time.
//
// The lock is the operating system's `flock` on the file `lock`: it ends with the process in any case, so a `kill -9` leaves nothing to
// clean and a reused process id misleads no one. The file's text only names the holder. Bun has no flock, hence the call into the C
// library. Bun opens files close-on-exec, so PostgreSQL, which outlives a killed program, inherits the lock only until its exec: a locked
// folder is therefore tried again for a moment.

const Holder = Schema.fromJsonString(Schema.Struct({ pid: Schema.Int, since: Schema.String }))

const exclusiveWithoutWaiting = 2 | 4

/** A child process that was being started when its parent died holds the lock until its exec: 25 ms and more on busy cores. */
const beginningProgram = { tries: 20, intervalMs: 50 } as const

const libraryName = process.platform === "darwin" ? "libSystem.B.dylib" : "libc.so.6"

const attempt = <A>(lockFile: string, act: () => A): Effect.Effect<A, DatabaseUnavailable> =>
  Effect.try({
    try: act,
    catch: (error) =>
      unavailable(
        "folderUnusable",
        `The lock ${lockFile} cannot be taken (${error instanceof Error ? error.message : String(error)}): give this user the right to write the folder, or set TROPISM_DATA to another one.`
      )
  })

const flock = (descriptor: number): boolean => {
  const library = dlopen(libraryName, {
    flock: { args: [FFIType.i32, FFIType.i32], returns: FFIType.i32 }
  })
  const answer = library.symbols.flock(descriptor, exclusiveWithoutWaiting)
  library.close()
  return answer === 0
}

const heldBy = (folder: string, text: string): DatabaseUnavailable => {
  const holder = Schema.decodeUnknownOption(Holder)(text)
  const who = Option.match(holder, {
    onNone: () => "another process",
    onSome: ({ pid, since }) => `process ${pid} since ${since}`
  })
  return unavailable(
    "folderHeld",
    `The data folder ${folder} is in use by ${who}: stop that program first, or set TROPISM_DATA to another folder.`
  )
}

const take = (folder: string, lockFile: string, since: string) =>
  Effect.gen(function* () {
    const descriptor = yield* attempt(lockFile, () =>
      fs.openSync(lockFile, fs.constants.O_RDWR | fs.constants.O_CREAT, 0o600)
    )
    const taken = yield* attempt(lockFile, () => flock(descriptor)).pipe(
      Effect.onError(() => Effect.sync(() => fs.closeSync(descriptor)))
    )
    if (!taken) {
      const text = yield* attempt(lockFile, () => fs.readFileSync(descriptor, "utf8")).pipe(
        Effect.ensuring(Effect.sync(() => fs.closeSync(descriptor)))
      )
      return yield* heldBy(folder, text)
    }
    yield* attempt(lockFile, () => {
      fs.ftruncateSync(descriptor)
      fs.writeSync(descriptor, `${JSON.stringify({ pid: process.pid, since })}\n`, 0)
    })
    return descriptor
  })

/** Locks `folder` for this program until the scope ends; fails within a second or two, naming the holder, if it is locked. */
export const holdFolder = Effect.fn("holdFolder")(function* (
  folder: string
): Effect.fn.Return<void, DatabaseUnavailable, Scope.Scope> {
  const since = DateTime.formatIso(DateTime.makeUnsafe(yield* Clock.currentTimeMillis))
  const taken = Effect.acquireRelease(take(folder, nodePath.join(folder, "lock"), since), (descriptor) =>
    // The file stays: removing it would let two programs lock two files of one name.
    Effect.sync(() => fs.closeSync(descriptor))
  )
  yield* taken.pipe(
    Effect.retry({
      while: (error) => error.reason === "folderHeld",
      times: beginningProgram.tries,
      schedule: Schedule.spaced(beginningProgram.intervalMs)
    })
  )
})
