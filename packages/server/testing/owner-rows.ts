/**
 * Looks at the rows themselves, as the owner of the database.
 *
 * For what a specification says of tables, and to let time pass for a row. A
 * story about anything else asks the doors.
 */
import { Effect } from "effect"
import { connect, errorCode, type PostgresAccess } from "../src/database/postgres-access.ts"
import { asOwner } from "./fresh-database.ts"

/** Runs a statement and answers its rows, each as an array of values. */
export const ask = (
  access: PostgresAccess,
  statement: string,
  values: ReadonlyArray<unknown> = []
): Effect.Effect<ReadonlyArray<ReadonlyArray<unknown>>> =>
  Effect.orDie(asOwner(access, (connection) => connection.queryValues(statement, values)))

/** A connection with a transaction in which some statements were made; it is broken off with the scope. */
export const holding = Effect.fnUntraced(function* (
  access: PostgresAccess,
  ...statements: ReadonlyArray<string>
) {
  const holder = yield* connect(access.ownerUrl)
  for (const statement of ["begin", ...statements]) yield* holder.query(statement)
  return holder
}, Effect.orDie)

/** Takes a lock of the server's own: of those who claim runs, or of a sweep: after the kill switches, or after what is stuck in a project. */
export const lockOf = (name: "claims" | "switches" | `stuck ${string}`, mode: "" | "_shared" = ""): string =>
  `select pg_advisory_xact_lock${mode}(hashtextextended('tropism.${name}', 0))`

/** From here on PostgreSQL will not let a run fail, as where no room is left for its end; until what is answered is done. */
export const refusingToFail = Effect.fnUntraced(function* (access: PostgresAccess, runId: unknown) {
  yield* ask(
    access,
    "create function kb.refuse_end() returns trigger language plpgsql as $$ begin raise exception 'disk full'; end $$"
  )
  yield* ask(
    access,
    `create trigger refuse_end before update on kb.agent_runs for each row
     when (new.id = '${runId}' and new.status = 'failed') execute function kb.refuse_end()`
  )
  return ask(access, "drop trigger refuse_end on kb.agent_runs")
})

/** The code with which PostgreSQL refuses a statement; undefined when it does not. */
export const refusalOf = (access: PostgresAccess, statement: string): Effect.Effect<string | undefined> =>
  asOwner(access, (connection) => connection.query(statement)).pipe(
    Effect.as(undefined),
    Effect.catch((error) => Effect.succeed(errorCode(error)))
  )
