/**
 * Makes the data folder of a server that has its database elsewhere: secrets lie in it, so nobody else may look.
 *
 * The folder of an embedded PostgreSQL is made where that is prepared
 * (`embedded-postgres.ts`), because PostgreSQL's account may have to pass.
 */
import * as fs from "node:fs"
import * as nodePath from "node:path"
import { dlopen, FFIType } from "bun:ffi"
import { Effect, FileSystem, Path, Clock, DateTime, Option, Schedule, Schema, type Scope } from "effect"
import { type DatabaseUnavailable, unavailable } from "./database-unavailable.ts"

/** Makes the folder if it is missing, its owner's alone; one that was there stays as it was. */
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

// One program at a time on one data folder.
//
// The lock is the operating system's `flock` on the file `lock`: it ends with
// the process however that ends, so a `kill -9` leaves nothing to clean and a
// process id that is used again deceives nobody. The file's text only tells a
// second program who holds it. Bun offers no flock of its own, hence the call
// into the C library. Bun opens files close-on-exec, so PostgreSQL, which
// outlives a killed program, does not inherit the lock for longer than it takes
// to begin: whoever finds the folder held asks again for a moment.

const Holder = Schema.fromJsonString(Schema.Struct({ pid: Schema.Int, since: Schema.String }))

const exclusiveWithoutWaiting = 2 | 4

/** A program that somebody was starting as it ended holds the lock until it has begun: 25 ms and more on busy cores. */
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

/** Holds `folder` for this program until the scope ends; fails within a second or two, naming the holder, when it is taken. */
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
