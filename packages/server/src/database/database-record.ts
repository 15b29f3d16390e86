/**
 * The file `database.json` of a data folder: where its cluster lies and how to log in.
 *
 * It is complete before the cluster exists, so an interrupted first start
 * finds the passwords again, and it is replaced as a whole, so a reader sees
 * the old or the new one. It holds passwords: its mode is 0600.
 */
import { randomBytes } from "node:crypto"
import { Effect, FileSystem, Option, Path, Schema } from "effect"
import { type DatabaseUnavailable, folderProblem, unavailable } from "./database-unavailable.ts"

export const DatabaseRecord = Schema.Struct({
  format: Schema.Literal(1),
  /** Relative to the data folder where it lies inside, so that the folder can be moved. */
  cluster: Schema.NonEmptyString,
  /** The port of the last start, which the next one tries first; 0 before the first. */
  port: Schema.Int,
  /** Whether the cluster was ever made and used: one that is missing after that was lost. */
  complete: Schema.Boolean,
  passwords: Schema.Struct({
    admin: Schema.NonEmptyString,
    owner: Schema.NonEmptyString,
    server: Schema.NonEmptyString
  })
})
export type DatabaseRecord = typeof DatabaseRecord.Type

const Text = Schema.fromJsonString(DatabaseRecord)

const fileName = "database.json"

// Passwords are for strangers to guess, so they never come from a seed that a test or simulation sets.
const newPassword = Effect.sync(() => randomBytes(24).toString("base64url"))

/** A record with new passwords. */
export const newRecord = Effect.fnUntraced(function* (cluster: string) {
  const passwords = { admin: yield* newPassword, owner: yield* newPassword, server: yield* newPassword }
  const record: DatabaseRecord = { format: 1, cluster, port: 0, complete: false, passwords }
  return record
})

/** Reads the record; none where the folder has no cluster yet. */
export const readRecord = Effect.fn("readRecord")(function* (
  dataFolder: string
): Effect.fn.Return<Option.Option<DatabaseRecord>, DatabaseUnavailable, FileSystem.FileSystem | Path.Path> {
  const fileSystem = yield* FileSystem.FileSystem
  const path = yield* Path.Path
  const file = path.join(dataFolder, fileName)
  if (!(yield* fileSystem.exists(file).pipe(Effect.mapError(folderProblem(dataFolder))))) return Option.none()
  const text = yield* fileSystem.readFileString(file).pipe(Effect.mapError(folderProblem(dataFolder)))
  const record = yield* Schema.decodeEffect(Text)(text).pipe(
    Effect.mapError(() =>
      unavailable(
        "recordDamaged",
        `The file ${file} cannot be understood: restore it from a backup, or move the folder ${dataFolder} away to begin anew.`
      )
    )
  )
  return Option.some(record)
})

/** Replaces the record durably; it belongs to whoever owns the folder. */
export const writeRecord = Effect.fn("writeRecord")(
  function* (dataFolder: string, record: DatabaseRecord) {
    const fileSystem = yield* FileSystem.FileSystem
    const path = yield* Path.Path
    const scratch = path.join(dataFolder, `${fileName}.partial`)
    const text = new TextEncoder().encode(`${JSON.stringify(record, null, 2)}\n`)
    yield* Effect.scoped(
      Effect.gen(function* () {
        const file = yield* fileSystem.open(scratch, { flag: "w", mode: 0o600 })
        yield* file.writeAll(text)
        yield* file.sync
      })
    )
    yield* keepOwner(dataFolder, scratch)
    yield* fileSystem.rename(scratch, path.join(dataFolder, fileName))
    yield* syncFolder(dataFolder)
  },
  (effect, dataFolder) => Effect.mapError(effect, folderProblem(dataFolder))
)

/** Flushes the names in a folder, after which a rename in it survives a power cut. */
export const syncFolder = Effect.fnUntraced(function* (folder: string) {
  const fileSystem = yield* FileSystem.FileSystem
  yield* Effect.scoped(Effect.flatMap(fileSystem.open(folder, { flag: "r" }), (file) => file.sync))
})

/** Root may start the program once in the folder of an ordinary user, who must be able to start it again. */
const keepOwner = Effect.fnUntraced(function* (folder: string, file: string) {
  if (process.getuid?.() !== 0) return
  const fileSystem = yield* FileSystem.FileSystem
  const { gid, uid } = yield* fileSystem.stat(folder)
  yield* fileSystem.chown(
    file,
    Option.getOrElse(uid, () => 0),
    Option.getOrElse(gid, () => 0)
  )
})
