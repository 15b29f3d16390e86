/**
 * How the database is reached: two logins, and what to send when connecting.
 *
 * The owner makes and changes tables; the server reads and writes them as a
 * role that owns nothing, so row-level security binds it. Both are addresses
 * and no connections: the pools are `Database`'s.
 */
import { PgConnection } from "@effect/sql-pg"
import { Effect, Predicate, Redacted, Schedule, type Scope } from "effect"
import type { SqlError } from "effect/sql/SqlError"
import { databaseLimits } from "../limits.ts"
import { type DatabaseUnavailable, unavailable } from "./database-unavailable.ts"

/** The role that owns the database and everything in it. */
export const ownerRole = "tropism_owner"

/** The role under which the server works; it owns nothing and passes no row-level security. */
export const serverRole = "tropism_server"

export interface PostgresAccess {
  /** Connects as the owner: migrations, and nothing else. */
  readonly ownerUrl: Redacted.Redacted<string>

  /** Connects for the server's own work, together with `serverStartupParameters`. */
  readonly serverUrl: Redacted.Redacted<string>

  /** Session settings that each server connection sends when it starts; PgClient's `startupParameters`. */
  readonly serverStartupParameters: Readonly<Record<string, string>>

  /** Whether this program runs the PostgreSQL itself. */
  readonly embedded: boolean

  /** The major version of PostgreSQL. */
  readonly version: number
}

/** What `localUrl` needs to name a login on this machine. */
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

/** Opens one connection that ends with the scope; waits while PostgreSQL says that it is starting. */
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

/** Tells whether PostgreSQL answered that it is not ready yet. */
const isStarting = (error: SqlError): boolean => errorCode(error) === "57P03"

/** PostgreSQL's five-character code of an error, or the operating system's (`ECONNREFUSED`). */
export const errorCode = (error: SqlError): string | undefined => {
  const cause = error.reason.cause
  return Predicate.hasProperty(cause, "code") && typeof cause.code === "string" ? cause.code : undefined
}

/** What the server or the operating system said, without the library's own words. */
export const errorText = (error: SqlError): string => {
  const cause = error.reason.cause
  return Predicate.isError(cause) ? cause.message : error.message
}

/** Host, port and database of an address: all of it that may be shown. */
export const place = (url: Redacted.Redacted<string>): string => {
  const parsed = URL.parse(Redacted.value(url))
  return parsed === null ? "DATABASE_URL" : `${parsed.host}${parsed.pathname}`
}

/** Says why a connection to `url` failed and what to look at. */
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
