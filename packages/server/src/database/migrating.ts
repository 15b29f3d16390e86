/**
 * Brings a database to the schema that this program needs.
 *
 * Flow: graph → outbox → dispatch → run → tool → task, all on **database**
 *
 * Migrations run as the owner, once each, in order, in one transaction, so one that
 * is cut off leaves nothing. One program at a time runs them: the others wait at a
 * lock that is no table's, and where nothing is missing nobody locks anything. Who
 * waits for a table keeps everybody behind it from that table, and so does not wait
 * for long: whoever reads it may be a backup that takes an hour.
 */
import { PgClient } from "@effect/sql-pg"
import { Clock, Effect, Redacted, Schema } from "effect"
import { Migrator, SqlClient, SqlError } from "effect/sql"
import { databaseLimits } from "../limits.ts"
import { migrations, schemaVersion } from "./migrations.ts"
import { goneClients } from "./pool.ts"
import { errorCode } from "./postgres-access.ts"

/** Why a database cannot be brought to this program's schema, in one sentence that says what to do. */
export class SchemaRefused extends Schema.TaggedError<SchemaRefused>()("SchemaRefused", {
  reason: Schema.Literals(["newer", "failed", "held"]),
  message: Schema.String
}) {}

const table = "tropism_migrations"

/** Runs what has not run yet on the database of `ownerUrl`; what fails leaves nothing behind. Others may keep its tables for `patienceMs`. */
export const migrate = (
  ownerUrl: Redacted.Redacted,
  patienceMs: number = databaseLimits.migrationPatienceMs
): Effect.Effect<void, SchemaRefused> =>
  Effect.gen(function* () {
    const sql = yield* SqlClient.SqlClient
    if (yield* isCurrent) return
    yield* sql`select pg_advisory_lock(hashtextextended('tropism.migrations', 0))`
    // Whoever was before may have done it.
    if (yield* isCurrent) return
    yield* sql`select set_config('lock_timeout', ${String(databaseLimits.migrationLockWaitMs)}, false)`
    yield* whenLetIn(run, yield* Clock.currentTimeMillis, patienceMs)
  }).pipe(
    Effect.catchTags({
      MigrationError: ({ message, cause }) =>
        Effect.fail(failed(`${message} (${textOf(cause)})`, cureOf(cause, ownerUrl))),
      SqlError: (error) => Effect.fail(failed(textOf(error), cureOf(error, ownerUrl)))
    }),
    // Its session ends with it, and so do the locks of the session.
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

/** Whether nothing is missing. A program that is older than the database would write rows that the newer one does not expect. */
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

/** Does it again while others hold a table that it needs, and lets them work in between. */
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

/** Who holds tables of the program in a transaction: of all programs those first that are no server. */
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

/** What to do about it: whoever may not change a database is not its owner. */
const cureOf = (error: unknown, ownerUrl: Redacted.Redacted): string | undefined => {
  if (!(error instanceof SqlError.SqlError) || errorCode(error) !== "42501") return undefined
  const { pathname, username } = new URL(Redacted.value(ownerUrl))
  const [database, login] = [pathname.slice(1), username].map(decodeURIComponent)
  return `let DATABASE_URL log in as the owner of the database and of what is in it (an administrator makes the login that with: alter database "${database}" owner to "${login}")`
}

/** What the database said, without the library's own words. */
const textOf = (error: unknown): string => {
  const cause = error instanceof SqlError.SqlError ? error.reason.cause : error
  return (cause instanceof Error ? cause.message : String(cause)).replace(/\.$/, "")
}
