/**
 * A server for stories that let people wait in line: nobody loses a place because the story is slow.
 *
 * A server gives a wait for a lock up after a second and takes it up again behind whoever came meanwhile. A story in
 * which the order of those who wait says who comes first would have to be faster than that.
 */
import { Effect, Layer } from "effect"
import { type PostgresAccess, serverRole } from "../src/database/postgres-access.ts"
import { freshDatabase } from "./fresh-database.ts"
import { Interposed, interposedServer } from "./interposed.ts"
import { ask } from "./owner-rows.ts"

/** Lets the server's transactions wait for locks without end: what it sets for them is set, but for how long they wait. */
const inLine = Effect.fnUntraced(function* (access: PostgresAccess) {
  for (const statement of [
    "create schema patience",
    `create function patience.set_config(name text, value text, is_local boolean) returns text language sql
      as $$ select pg_catalog.set_config(name, case name when 'lock_timeout' then '0' else value end, is_local) $$`,
    `grant usage on schema patience to ${serverRole}`
  ])
    yield* ask(access, statement)
  const { serverStartupParameters } = access
  return {
    ...access,
    serverStartupParameters: { ...serverStartupParameters, search_path: "patience, pg_catalog" }
  }
})

/** An interposed server on which whoever waits for a lock keeps the place until it is his turn. */
export const interposedInLine = Layer.effect(
  Interposed,
  Effect.gen(function* () {
    const access = yield* Effect.flatMap(freshDatabase, inLine)
    return { server: yield* interposedServer(access), access }
  })
)
