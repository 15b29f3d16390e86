/**
 * Makes the database and the two roles: the owner, and the server that owns nothing.
 *
 * Every step asks first whether it is done, so a provision that was cut off is
 * completed by the next, and programs that share a database may provision at
 * once. Rights on tables are given by the migrations that make the tables.
 */
import type { PgConnection } from "@effect/sql-pg"
import { Effect, Redacted, Schedule } from "effect"
import type { SqlError } from "effect/sql/SqlError"
import { databaseLimits } from "../limits.ts"
import { type DatabaseUnavailable, unavailable } from "./database-unavailable.ts"
import { connect, errorCode, errorText, ownerRole, serverRole, withDatabase } from "./postgres-access.ts"

/** The database that the embedded PostgreSQL holds. */
export const databaseName = "tropism"

/** What the roles may not do, whatever the cluster's defaults are. */
const powerless = "nosuperuser nobypassrls nocreatedb nocreaterole noreplication"

/** Held while roles are made, so that programs that start at once do so one after another. */
const advisoryLock = "hashtextextended('tropism.provision', 0)"

const isThere = (connection: PgConnection.PgConnection, question: string) =>
  Effect.map(connection.queryValues(question), (rows) => rows.length > 0)

const makeRole = Effect.fnUntraced(function* (
  connection: PgConnection.PgConnection,
  role: string,
  login: string
) {
  if (yield* isThere(connection, `select from pg_roles where rolname = '${role}'`)) return
  yield* connection.query(`create role ${role} ${login} ${powerless}`)
})

export interface EmbeddedPasswords {
  readonly owner: string
  readonly server: string
}

/** Provisions the embedded PostgreSQL, whose superuser `adminUrl` names. */
export const provisionEmbedded = Effect.fn("provisionEmbedded")(
  function* (adminUrl: Redacted.Redacted<string>, passwords: EmbeddedPasswords) {
    const connection = yield* connect(adminUrl)
    // The passwords are our own and hold letters, digits, "-" and "_" only.
    yield* makeRole(connection, ownerRole, `login password '${passwords.owner}'`)
    yield* makeRole(connection, serverRole, `login password '${passwords.server}'`)
    if (!(yield* isThere(connection, `select from pg_database where datname = '${databaseName}'`))) {
      yield* connection.query(`create database ${databaseName} owner ${ownerRole}`)
    }
    yield* closeToOthers(connection, databaseName)
    const inside = yield* connect(withDatabase(adminUrl, databaseName))
    yield* inside.query(`alter schema public owner to ${ownerRole}`)
  },
  Effect.scoped,
  Effect.mapError((error) =>
    unavailable(
      "provisionFailed",
      `The database could not be prepared (${errorText(error)}): start again, and report it if it stays.`
    )
  )
)

/** Lets only the owner and the server into a database. */
export const closeToOthers = Effect.fnUntraced(function* (
  connection: PgConnection.PgConnection,
  database: string
) {
  yield* connection.query(`revoke all on database ${database} from public`)
  yield* connection.query(`grant connect on database ${database} to ${serverRole}`)
})

const byHand = (database: string, login: string): string =>
  [
    `create role ${serverRole} nologin ${powerless};`,
    `grant ${serverRole} to "${login}";`,
    `grant connect on database "${database}" to ${serverRole};`
  ].join("\n")

const missing = (database: string, login: string, said: string): DatabaseUnavailable =>
  unavailable(
    "rightsMissing",
    `The login ${login} may not make the role ${serverRole} (${said}): let an administrator of that PostgreSQL run this once, then start again.\n${byHand(database, login)}`
  )

const makeServerRole = Effect.fnUntraced(function* (connection: PgConnection.PgConnection, version: number) {
  yield* connection.query(`select pg_advisory_xact_lock(${advisoryLock})`)
  yield* makeRole(connection, serverRole, "nologin")
  const member = `select where pg_has_role(current_user, '${serverRole}', '${version >= 16 ? "SET" : "MEMBER"}')`
  if (!(yield* isThere(connection, member))) {
    yield* connection.query(`grant ${serverRole} to current_user`)
  }
})

/** Runs `act` as one transaction of this connection. */
const inTransaction = <A, E, R>(connection: PgConnection.PgConnection, act: Effect.Effect<A, E, R>) =>
  Effect.gen(function* () {
    yield* connection.query("begin")
    yield* connection.query(`set local lock_timeout = ${databaseLimits.provisionLockTimeoutMs}`)
    const answer = yield* act
    yield* connection.query("commit")
    return answer
  }).pipe(Effect.onError(() => Effect.ignore(connection.query("rollback"))))

/** Roles belong to the whole cluster and locks to one database, so another database's program may have been first. */
const madeMeanwhile = (error: SqlError): boolean => ["42710", "23505"].includes(errorCode(error) ?? "")

const checkServerRole = Effect.fnUntraced(function* (connection: PgConnection.PgConnection, login: string) {
  const [role] = yield* connection.queryValues(
    `select rolsuper or rolbypassrls from pg_roles where rolname = '${serverRole}'`
  )
  if (login === serverRole) {
    return yield* unavailable(
      "rightsMissing",
      `DATABASE_URL logs in as ${serverRole}, which must own nothing: use the login that owns the database.`
    )
  }
  if (role?.[0] === true) {
    return yield* unavailable(
      "rightsMissing",
      `The role ${serverRole} passes row-level security, which keeps projects apart: run "alter role ${serverRole} nosuperuser nobypassrls" and start again.`
    )
  }
})

/**
 * Provisions a PostgreSQL that others run, through the owner's own connection.
 *
 * **Details**
 *
 * The server role gets no password, since the programs on one database could
 * not share it: the owner's login is made a member and takes the role on.
 */
export const provisionExternal = Effect.fn("provisionExternal")(function* (
  connection: PgConnection.PgConnection,
  version: number
): Effect.fn.Return<void, DatabaseUnavailable> {
  const orFailed = Effect.mapError((error: SqlError) =>
    unavailable(
      "provisionFailed",
      `The role ${serverRole} could not be prepared (${errorText(error)}): start again, and report it if it stays.`
    )
  )
  const names = yield* connection.queryValues("select current_user, current_database()").pipe(orFailed)
  const [login = "", database = ""] = (names[0] ?? []).map(String)
  yield* inTransaction(connection, makeServerRole(connection, version)).pipe(
    Effect.retry({
      while: madeMeanwhile,
      times: databaseLimits.provisionRetries,
      schedule: Schedule.spaced(databaseLimits.startRetryDelayMs)
    }),
    Effect.catchIf(
      (error) => error.reason._tag === "AuthorizationError",
      (error) => Effect.fail(missing(database, login, errorText(error)))
    ),
    Effect.catchTag("SqlError", (error) => orFailed(Effect.fail(error)))
  )
  yield* checkServerRole(connection, login).pipe(
    Effect.catchTag("SqlError", (error) => orFailed(Effect.fail(error)))
  )
})
