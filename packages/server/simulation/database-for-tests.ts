/**
 * A database for simulations inside the tests' own PostgreSQL.
 *
 * A deadlock is found there at once and not after a second, so that a seed
 * always repeats it; only the superuser may ask for that.
 */
import { Effect, Redacted, type Scope } from "effect"
import { inject } from "vitest"
import { connect, type PostgresAccess } from "../src/database/postgres-access.ts"
import { freshDatabase } from "../testing/fresh-database.ts"

export const simulationDatabase: Effect.Effect<PostgresAccess, never, Scope.Scope> = Effect.gen(function* () {
  const access = yield* freshDatabase
  const name = new URL(Redacted.value(access.ownerUrl)).pathname.slice(1)
  yield* connect(Redacted.make(inject("postgres").adminUrl)).pipe(
    Effect.flatMap((admin) => admin.query(`alter database ${name} set deadlock_timeout = '1ms'`)),
    Effect.scoped,
    Effect.orDie
  )
  return access
})
