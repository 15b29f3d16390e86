/**
 * The database's logins and connection settings.
 *
 * The owner creates and changes tables; the server works as a role that owns nothing, so row-level security applies to it. Both are
 * addresses, not connections: `Database` has the pools.
 */
import { randomBytes } from "node:crypto"
import { PgConnection } from "@effect/sql-pg"
import { Effect, Predicate, Redacted, Schedule, type Scope, FileSystem, Option, Path, Schema } from "effect"
import type { SqlError } from "effect/sql/SqlError"
import { databaseLimits } from "../limits.ts"
import { type DatabaseUnavailable, unavailable, folderProblem } from "./database-unavailable.ts"

/** The role that owns the database and everything in it. */
export const ownerRole = "tropism_owner"

/** The server's role; it owns nothing and cannot bypass row-level security. */
export const serverRole = "tropism_server"

export interface PostgresAccess {
  /** Connects as the owner: for migrations only. */
  readonly ownerUrl: Redacted.Redacted<string>

  /** Connects for the server's own work, together with `serverStartupParameters`. */
  readonly serverUrl: Redacted.Redacted<string>

  /** Session settings that each server connection sends at its start; PgClient's `startupParameters`. */
  readonly serverStartupParameters: Readonly<Record<string, string>>

  /** Whether this program runs PostgreSQL itself. */
  readonly embedded: boolean

  /** The major version of PostgreSQL. */
  readonly version: number
}

/** A login for `localUrl`. */
export interface LocalLogin {
  readonly role: string
  readonly password: string
  readonly port: number
  readonly database: string
}

/** The address of a database on this machine. */
export const localUrl = (login: LocalLogin): Redacted.Redacted<string> =>
  Redacted.make(
    `postgres://${login.role}:${encodeURIComponent(login.password)}@127.0.0.1:${login.port}/${login.database}`
  )

/** The same address with another database. */
export const withDatabase = (url: Redacted.Redacted<string>, database: string): Redacted.Redacted<string> => {
  const changed = new URL(Redacted.value(url))
  changed.pathname = `/${encodeURIComponent(database)}`
  return Redacted.make(changed.toString())
}

/** Opens one connection that ends with the scope; waits while PostgreSQL is starting. */
export const connect = (
  url: Redacted.Redacted<string>
): Effect.Effect<PgConnection.PgConnection, SqlError, Scope.Scope> =>
  PgConnection.make({
    url,
    connectTimeout: databaseLimits.connectTimeoutMs,
    applicationName: "tropism"
  }).pipe(
    Effect.retry({
      while: isStarting,
      schedule: Schedule.spaced(databaseLimits.startRetryDelayMs).pipe(
        Schedule.upTo({ duration: databaseLimits.startingTimeoutMs })
      )
    })
  )

/** Whether PostgreSQL answered that it is not ready yet. */
const isStarting = (error: SqlError): boolean => errorCode(error) === "57P03"

/** PostgreSQL's five-character code of an error, or the operating system's (`ECONNREFUSED`). */
export const errorCode = (error: SqlError): string | undefined => {
  const cause = error.reason.cause
  return Predicate.hasProperty(cause, "code") && typeof cause.code === "string" ? cause.code : undefined
}

/** The server's or the operating system's message, without the library's. */
export const errorText = (error: SqlError): string => {
  const cause = error.reason.cause
  return Predicate.isError(cause) ? cause.message : error.message
}

/** Host, port and database of an address: the parts that may be shown. */
export const place = (url: Redacted.Redacted<string>): string => {
  const parsed = URL.parse(Redacted.value(url))
  return parsed === null ? "DATABASE_URL" : `${parsed.host}${parsed.pathname}`
}

/** Explains why a connection to `url` failed and what to check. */
export const connectionProblem =
  (url: Redacted.Redacted<string>) =>
  (error: SqlError): DatabaseUnavailable => {
    const code = errorCode(error)
    if (error.reason._tag === "AuthenticationError" || code === "3D000") {
      return unavailable(
        "loginRefused",
        `PostgreSQL at ${place(url)} refused the login (${errorText(error)}): correct the user, password or database name in DATABASE_URL.`
      )
    }
    return unavailable(
      "unreachable",
      `No PostgreSQL answered at ${place(url)} (${errorText(error)}): start it, or correct DATABASE_URL; without DATABASE_URL the program starts a PostgreSQL of its own.`
    )
  }

// The file `database.json` of a data folder: the cluster's place and the logins.
//
// It is complete before the cluster exists, so an interrupted first start finds the passwords again, and it is replaced atomically, so a
// reader sees the old or the new one. It contains passwords: its mode is 0600.

export const DatabaseRecord = Schema.Struct({
  format: Schema.Literal(1),
  /** Relative to the data folder if it is inside, so that the folder can be moved. */
  cluster: Schema.NonEmptyString,
  /** The port of the last start, which the next one tries first; 0 before the first. */
  port: Schema.Int,
  /** Whether the cluster was ever created and used: one that is missing after that was lost. */
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

// Passwords must be unpredictable, so they never come from a seed that a test or simulation sets.
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

/** Replaces the record durably; it belongs to the folder's owner. */
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

/** Flushes a folder's entries, after which a rename in it survives a power loss. */
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
