/**
 * Migrates a database to this program's schema.
 *
 * Migrations run as the owner, once each, in order, in one transaction, so an interrupted one leaves nothing. One program at a time runs
 * them, under an advisory lock; when nothing is missing, nothing is locked. A migration that waits for a table lock blocks all later users
 * of the table, so it waits only briefly: the holder may be a backup that takes an hour.
 */
import { PgClient, type PgConnection } from "@effect/sql-pg"
import { Clock, Effect, Redacted, Schema, Option, Schedule } from "effect"
import { Migrator, SqlClient, SqlError } from "effect/sql"
import { databaseLimits } from "../limits.ts"
import { type DatabaseUnavailable, unavailable } from "./database-unavailable.ts"
import { migrations, schemaVersion } from "./migrations.ts"
import { goneClients } from "./pool.ts"
import {
  errorCode,
  readRecord,
  connect,
  connectionProblem,
  localUrl,
  ownerRole,
  serverRole,
  errorText,
  withDatabase,
  place,
  type PostgresAccess
} from "./postgres-access.ts"

/** Why a database cannot be migrated, in one sentence with the remedy. */
export class SchemaRefused extends Schema.TaggedError<SchemaRefused>()("SchemaRefused", {
  reason: Schema.Literals(["newer", "failed", "held"]),
  message: Schema.String
}) {}

const table = "tropism_migrations"

/** Runs the missing migrations on the database of `ownerUrl`; a failure leaves nothing. Others may hold its tables for `patienceMs`. */
export const migrate = (
  ownerUrl: Redacted.Redacted,
  patienceMs: number = databaseLimits.migrationPatienceMs
): Effect.Effect<void, SchemaRefused> =>
  Effect.gen(function* () {
    const sql = yield* SqlClient.SqlClient
    if (yield* isCurrent) return
    yield* sql`select pg_advisory_lock(hashtextextended('tropism.migrations', 0))`
    // Another program may have migrated meanwhile.
    if (yield* isCurrent) return
    yield* sql`select set_config('lock_timeout', ${String(databaseLimits.migrationLockWaitMs)}, false)`
    yield* whenLetIn(run, yield* Clock.currentTimeMillis, patienceMs)
  }).pipe(
    Effect.catchTags({
      MigrationError: ({ message, cause }) =>
        Effect.fail(failed(`${message} (${textOf(cause)})`, cureOf(cause, ownerUrl))),
      SqlError: (error) => Effect.fail(failed(textOf(error), cureOf(error, ownerUrl)))
    }),
    // The session ends with the process, and so do its locks.
    Effect.provide(
      PgClient.layer({
        url: ownerUrl,
        maxConnections: 1,
        startupParameters: {
          idle_session_timeout: String(databaseLimits.migrationIdleMs),
          idle_in_transaction_session_timeout: String(databaseLimits.migrationIdleMs),
          ...goneClients
        }
      })
    ),
    Effect.catchTag("SqlError", (error) => Effect.fail(failed(textOf(error)))),
    Effect.scoped
  )

/** Whether nothing is missing. A program older than the database fails here: it would write rows that the newer one does not expect. */
const isCurrent = Effect.gen(function* () {
  const sql = yield* SqlClient.SqlClient
  const [found] = yield* sql<{ present: boolean }>`select to_regclass(${table}) is not null as present`
  if (found?.present !== true) return false
  const [row] = yield* sql<{ id: number | null }>`select max(migration_id) as id from ${sql(table)}`
  const id = row?.id ?? 0
  if (id > schemaVersion)
    return yield* new SchemaRefused({
      reason: "newer",
      message: `The database was made by a newer version of this program (its schema is ${id}, this program knows ${schemaVersion}): start the newer version, or choose another database.`
    })
  return id === schemaVersion
})

const run = Migrator.make({})({ loader: Migrator.fromRecord(migrations), table })

/** Retries while others hold a needed table, and lets them work in between. */
const whenLetIn = <A, E, R>(
  work: Effect.Effect<A, E, R>,
  sinceMs: number,
  patienceMs: number
): Effect.Effect<A, E | SchemaRefused | SqlError.SqlError, R | SqlClient.SqlClient> =>
  Effect.catchIf(work, isHeldByOthers, () =>
    Effect.gen(function* () {
      if ((yield* Clock.currentTimeMillis) - sinceMs >= patienceMs)
        return yield* new SchemaRefused({
          reason: "held",
          message: `The database's schema could not be brought up to date, because other programs use its tables: ${yield* holders}. Nothing was changed: start again when they have ended.`
        })
      yield* Effect.logWarning(
        `Other programs use tables that are to be changed, and are let go first: ${yield* holders}`,
        { code: "tablesHeld" }
      )
      yield* Effect.sleep(databaseLimits.migrationLockWaitMs)
      return yield* whenLetIn(work, sinceMs, patienceMs)
    })
  )

/** Whether it waited too long for a lock, in a statement of its own or in one of a migration. */
const isHeldByOthers = (error: unknown): boolean => {
  const cause = error instanceof Migrator.MigrationError ? error.cause : error
  return cause instanceof SqlError.SqlError && errorCode(cause) === "55P03"
}

/** The sessions that hold the program's tables in a transaction; other programs come before servers. */
const holders = Effect.gen(function* () {
  const sql = yield* SqlClient.SqlClient
  const found = yield* sql<{ who: string }>`
    select coalesce(nullif(activity.application_name, ''), 'a program') || ' (process ' || activity.pid || ')' as who
    from pg_stat_activity activity
    where activity.datid = (select oid from pg_database where datname = current_database()) and activity.pid <> pg_backend_pid()
      and exists (
        select from pg_locks held join pg_class on pg_class.oid = held.relation
        where held.pid = activity.pid and held.granted and held.database = activity.datid
          and (pg_class.relnamespace = to_regnamespace('kb') or pg_class.oid = to_regclass(${table}))
      )
    order by activity.application_name like 'tropism %', activity.pid
    limit 3`
  return found.length === 0 ? "some that have ended meanwhile" : found.map(({ who }) => who).join(", ")
})

const failed = (why: string, cure = "mend the cause") =>
  new SchemaRefused({
    reason: "failed",
    message: `The database's schema could not be brought up to date: ${why}. Nothing was changed; ${cure} and start again.`
  })

/** Advice for the error: a login without the right to change the database is not its owner's. */
const cureOf = (error: unknown, ownerUrl: Redacted.Redacted): string | undefined => {
  if (!(error instanceof SqlError.SqlError) || errorCode(error) !== "42501") return undefined
  const { pathname, username } = new URL(Redacted.value(ownerUrl))
  const [database, login] = [pathname.slice(1), username].map(decodeURIComponent)
  return `let DATABASE_URL log in as the owner of the database and of what is in it (an administrator makes the login that with: alter database "${database}" owner to "${login}")`
}

/** The database's message, without the library's. */
const textOf = (error: unknown): string => {
  const cause = error instanceof SqlError.SqlError ? error.reason.cause : error
  return (cause instanceof Error ? cause.message : String(cause)).replace(/\.$/, "")
}

// Preflight: inspects a database and changes nothing.
//
// For diagnosis: what a start would create is reported as missing, not created.

export interface DatabaseFacts {
  /** The major version of PostgreSQL. */
  readonly version: number
  readonly isWritable: boolean
  /** The newest migration that has run; null where none has. */
  readonly schema: number | null
  /** The newest migration of this program. */
  readonly knownSchema: number
  /** How far the database's clock is ahead of this machine's. */
  readonly aheadMs: number
  /** What the server's role lacks; null where it is correct. */
  readonly roleFault: string | null
}

/**
 * The state of a database.
 *
 * In the program's own cluster the server logs in with its role; in any other it logs in as the owner and then takes the role, which must
 * be granted to the owner.
 */
export const examineDatabase = Effect.fn("examineDatabase")(function* (
  url: Redacted.Redacted<string>,
  cluster: "own" | "another"
) {
  const orSaid = Effect.mapError(connectionProblem(url))
  const connection = yield* connect(url).pipe(orSaid)
  const before = yield* Clock.currentTimeMillis
  const rows = yield* connection
    .queryValues(
      `select current_setting('server_version_num')::int / 10000, current_setting('transaction_read_only') = 'off',
         (extract(epoch from clock_timestamp()) * 1000)::float8, to_regclass('tropism_migrations') is not null,
         (select case when rolsuper or rolbypassrls then 'passes row-level security'
            when ${cluster === "another"} and not pg_has_role(current_user, oid, 'member') then 'is not given to this login' end
          from pg_roles where rolname = '${serverRole}'),
         exists (select from pg_roles where rolname = '${serverRole}'),
         (select rolsuper or rolcreaterole from pg_roles where rolname = current_user)`
    )
    .pipe(orSaid)
  const after = yield* Clock.currentTimeMillis
  const [version, isWritable, time, hasSchema, roleFault, hasRole, mayMakeRoles] = rows[0] ?? []
  const found =
    hasSchema === true
      ? yield* connection.queryValues("select max(migration_id)::int from tropism_migrations").pipe(orSaid)
      : []
  const facts: DatabaseFacts = {
    version: Number(version),
    isWritable: isWritable === true,
    schema: found[0]?.[0] === undefined || found[0][0] === null ? null : Number(found[0][0]),
    knownSchema: schemaVersion,
    aheadMs: Math.round(Number(time) - (before + after) / 2),
    roleFault:
      hasRole === true
        ? (roleFault as string | null)
        : mayMakeRoles === true
          ? null
          : "is missing, and this login may not make it"
  }
  return facts
}, Effect.scoped)

/** The address of a data folder's running database; none where the folder has none yet. */
export const findOwnDatabase = Effect.fn("findOwnDatabase")(function* (dataFolder: string) {
  const record = yield* readRecord(dataFolder)
  return Option.filter(record, ({ complete }) => complete).pipe(
    Option.map(({ passwords, port }) =>
      localUrl({ role: ownerRole, password: passwords.owner, port, database: databaseName })
    )
  )
})

// Creates the database and the two roles: the owner, and the server that owns nothing.
//
// Every step first checks whether it is done, so an interrupted provisioning is completed by the next, and programs that share a database
// may provision at once. The migrations grant rights on the tables that they create.

/** The database in the embedded PostgreSQL. */
export const databaseName = "tropism"

/** Attributes that the roles must not have, whatever the cluster's defaults are. */
const powerless = "nosuperuser nobypassrls nocreatedb nocreaterole noreplication"

/** Held while roles are created, so that concurrent starts do it one after another. */
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
    // The passwords are our own and contain only letters, digits, "-" and "_".
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

/** Allows only the owner and the server to connect to a database. */
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

/** Roles belong to the whole cluster but locks to one database, so another database's program may have been first. */
const madeMeanwhile = (error: SqlError.SqlError): boolean =>
  ["42710", "23505"].includes(errorCode(error) ?? "")

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
 * Provisions an external PostgreSQL, through the owner's own connection.
 *
 * The server's role gets no password, because the programs on one database could not share it: the owner's login becomes a member and takes
 * the role.
 */
const provisionExternal = Effect.fn("provisionExternal")(function* (
  connection: PgConnection.PgConnection,
  version: number
): Effect.fn.Return<void, DatabaseUnavailable> {
  const orFailed = Effect.mapError((error: SqlError.SqlError) =>
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

// Connects to an external PostgreSQL at the address in `DATABASE_URL`.
//
// Nothing is started or stopped here. An unreachable server fails at once; only one that is starting is awaited.

const oldestVersion = 15

/** Returns the logins, after checking the version and the server's role. */
export const external = Effect.fn("external")(function* (
  url: Redacted.Redacted<string>
): Effect.fn.Return<PostgresAccess, DatabaseUnavailable> {
  if (!/^postgres(ql)?:$/.test(URL.parse(Redacted.value(url))?.protocol ?? ""))
    return yield* unavailable(
      "unreachable",
      "DATABASE_URL is no address of a PostgreSQL: write postgres://user:password@host:5432/database, or start without it to use the PostgreSQL that the program brings."
    )
  return yield* Effect.scoped(
    Effect.gen(function* () {
      const connection = yield* connect(url).pipe(Effect.mapError(connectionProblem(url)))
      const rows = yield* connection
        .queryValues("select current_setting('server_version_num')::int / 10000")
        .pipe(Effect.mapError(connectionProblem(url)))
      const version = Number(rows[0]?.[0])
      if (version < oldestVersion) {
        return yield* unavailable(
          "versionTooOld",
          `PostgreSQL at ${place(url)} is version ${version} and ${oldestVersion} is the oldest that works: upgrade it, or start without DATABASE_URL to use the one that the program brings.`
        )
      }
      yield* provisionExternal(connection, version)
      const access: PostgresAccess = {
        ownerUrl: url,
        serverUrl: url,
        serverStartupParameters: { role: serverRole },
        embedded: false,
        version
      }
      return access
    })
  )
})
