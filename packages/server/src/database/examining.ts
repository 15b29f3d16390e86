/**
 * Looks at a database as it is, and changes nothing.
 *
 * For whoever asks what is wrong: what may be missing for a start is told, not made.
 */
import { Clock, Effect, Option, Redacted } from "effect"
import { databaseName } from "./provision.ts"
import { readRecord } from "./database-record.ts"
import { schemaVersion } from "./migrations.ts"
import { connect, connectionProblem, localUrl, ownerRole, serverRole } from "./postgres-access.ts"

export interface DatabaseFacts {
  /** The major version of PostgreSQL. */
  readonly version: number
  readonly isWritable: boolean
  /** The newest migration that was run; null where none was. */
  readonly schema: number | null
  /** The newest that this program knows. */
  readonly knownSchema: number
  /** How far the database's clock is ahead of this machine's. */
  readonly aheadMs: number
  /** What the role under which the server works lacks; null where it is as it should be. */
  readonly roleFault: string | null
}

/**
 * What a database says of itself.
 *
 * **Details** In the program's own cluster the server logs in under its role; in any other, it takes that role
 * after it has logged in as the owner, who must be given it.
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

/** Where the database of a data folder answers while it runs; none where the folder has none yet. */
export const findOwnDatabase = Effect.fn("findOwnDatabase")(function* (dataFolder: string) {
  const record = yield* readRecord(dataFolder)
  return Option.filter(record, ({ complete }) => complete).pipe(
    Option.map(({ passwords, port }) =>
      localUrl({ role: ownerRole, password: passwords.owner, port, database: databaseName })
    )
  )
})
