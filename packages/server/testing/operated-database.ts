/**
 * What an operator does to the database of a story while servers are connected to it.
 */
import { Effect, Redacted } from "effect"
import { inject } from "vitest"
import { connect, type PostgresAccess, withDatabase } from "../src/database/postgres-access.ts"

/** The deeds of a database's operator, until the scope ends. */
export const operatedDatabase = Effect.fn("operatedDatabase")(function* ({ ownerUrl }: PostgresAccess) {
  const name = new URL(Redacted.value(ownerUrl)).pathname.slice(1)
  const admin = yield* connect(withDatabase(Redacted.make(inject("postgres").adminUrl), "postgres"))
  const change = (what: string) => Effect.orDie(admin.query(`alter database "${name}" ${what}`))
  const sendAway = Effect.orDie(
    admin.query(
      `select pg_terminate_backend(pid) from pg_stat_activity where datname = '${name}' and application_name like 'tropism %'`
    )
  )
  return {
    change,
    /** Ends the connections of servers; they come back to what the database has become. */
    sendAway,
    become: (what: string) => Effect.andThen(change(what), sendAway)
  }
})
