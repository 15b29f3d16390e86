/**
 * The log of the embedded PostgreSQL: bounded on disk, and read for its last words.
 *
 * PostgreSQL appends to the file through a handle that outlives this program,
 * so the file is cut in place and never replaced: a renamed log would go on
 * growing under its new name.
 */
import { Effect, FileSystem, Schedule } from "effect"
import { databaseLimits } from "../limits.ts"
import { lastWords } from "./postgres-process.ts"

const size = (file: string) =>
  Effect.gen(function* () {
    const fileSystem = yield* FileSystem.FileSystem
    return Number((yield* fileSystem.stat(file)).size)
  }).pipe(Effect.orElseSucceed(() => 0))

/** Keeps the part written so far as `….1` and begins anew, once the log is long. */
export const cutLog = Effect.fn("cutLog")(function* (file: string) {
  if ((yield* size(file)) <= databaseLimits.logMaxBytes) return
  const fileSystem = yield* FileSystem.FileSystem
  yield* fileSystem.copyFile(file, `${file}.1`).pipe(
    Effect.andThen(fileSystem.truncate(file)),
    // A log that cannot be cut is no reason to stop; the next look tries again.
    Effect.catch((error) => Effect.logWarning(`The log ${file} could not be cut: ${error.message}`))
  )
})

/** Looks at the log again and again until interrupted. */
export const keepLogShort = (file: string) =>
  cutLog(file).pipe(Effect.repeat(Schedule.spaced(databaseLimits.logCheckIntervalMs)))

/** Remembers where the log ends now; the effect that it returns reads what was written since. */
export const wordsSince = Effect.fnUntraced(function* (file: string) {
  const before = yield* size(file)
  const fileSystem = yield* FileSystem.FileSystem
  return fileSystem.readFile(file).pipe(
    Effect.map((bytes) => lastWords(new TextDecoder().decode(bytes.subarray(before)))),
    Effect.orElseSucceed(() => "")
  )
})
