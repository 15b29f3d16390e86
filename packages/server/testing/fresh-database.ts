/**
 * A database of one's own for a test file: a copy of the migrated template.
 *
 * Copying takes about a tenth of a second, so files share nothing and need no
 * order. The copy is dropped with the scope, together with whoever is still
 * connected to it.
 */
import { type PgConnection, PgPool } from "@effect/sql-pg"
import { randomBytes } from "node:crypto"
import { Clock, Effect, Redacted, type Scope } from "effect"
import type { SqlError } from "effect/sql/SqlError"
import { inject } from "vitest"
import { connect, ownerRole, type PostgresAccess, withDatabase } from "../src/database/postgres-access.ts"
import { closeToOthers, databaseName } from "../src/database/schema.ts"
import type { RunningPostgres } from "./global-setup.ts"

const asAdmin = <A, E>(
  postgres: RunningPostgres,
  act: (admin: PgConnection.PgConnection) => Effect.Effect<A, E, Scope.Scope>
) => Effect.scoped(Effect.flatMap(connect(Redacted.make(postgres.adminUrl)), act)).pipe(Effect.orDie)

/** A copy has the template's tables and rights inside, but not the rights on the database itself. */
const copy = (postgres: RunningPostgres, template: string) => {
  const name = `test_${randomBytes(6).toString("hex")}`
  return asAdmin(postgres, (admin) =>
    Effect.andThen(
      admin.query(`create database ${name} template ${template} owner ${ownerRole}`),
      closeToOthers(admin, name)
    )
  ).pipe(Effect.as(name))
}

const databaseFrom = Effect.fn("databaseFrom")(function* (template: string) {
  const postgres = inject("postgres")
  const name = yield* Effect.acquireRelease(copy(postgres, template), (made) =>
    asAdmin(postgres, (admin) => admin.query(`drop database if exists ${made} with (force)`))
  )
  const access: PostgresAccess = {
    ownerUrl: withDatabase(Redacted.make(postgres.ownerUrl), name),
    serverUrl: withDatabase(Redacted.make(postgres.serverUrl), name),
    serverStartupParameters: {},
    embedded: true,
    version: postgres.version
  }
  yield* lendOwners(access.ownerUrl)
  return access
})

/** The owner's connections of each copy that is there. */
const owners = new Map<string, PgPool.PgPool>()

/** Keeps connections that the looks of stories share: to open one takes longer than most looks do. */
const lendOwners = (url: Redacted.Redacted<string>) =>
  Effect.acquireRelease(
    PgPool.make({ url, applicationName: "tropism" }).pipe(
      Effect.provideService(Clock.Clock, Clock.Clock.defaultValue()),
      Effect.tap((pool) => Effect.sync(() => owners.set(Redacted.value(url), pool))),
      Effect.orDie
    ),
    () => Effect.sync(() => owners.delete(Redacted.value(url)))
  )

/** Does something with a connection of the owner's. */
export const asOwner = <A>(
  { ownerUrl }: PostgresAccess,
  act: (connection: PgConnection.PgConnection) => Effect.Effect<A, SqlError>
): Effect.Effect<A, SqlError> => {
  const pool = owners.get(Redacted.value(ownerUrl))
  return Effect.scoped(Effect.flatMap(pool === undefined ? connect(ownerUrl) : pool.get, act))
}

/** Makes a migrated, empty database and answers the ways in; it is dropped when the scope ends. */
export const freshDatabase: Effect.Effect<PostgresAccess, never, Scope.Scope> = databaseFrom(databaseName)

/** The same with nothing in it, not even a table. */
export const unmigratedDatabase: Effect.Effect<PostgresAccess, never, Scope.Scope> = databaseFrom("template0")
