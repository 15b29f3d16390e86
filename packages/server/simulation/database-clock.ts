/**
 * Makes PostgreSQL live in the time of the simulation.
 *
 * In a database that was prepared so, `now()` and `clock_timestamp()` are the instant that a connection was
 * last told: leases run out, schedules fall due and quiet times end when the
 * simulation's clock says so, and never because a machine was slow. Only their
 * names are hidden, by a schema that is searched before PostgreSQL's own; what
 * the server sends and what its functions say is not touched.
 */
import type { PgConnection } from "@effect/sql-pg"
import { Effect, type Redacted } from "effect"
import { connect, serverRole } from "../src/database/postgres-access.ts"
import type { Send } from "./line.ts"

/** What each connection asks for when it starts. */
export const timeStartupParameters = { search_path: "simulation, pg_catalog" }

const preparation: ReadonlyArray<string> = [
  `create schema if not exists simulation`,
  `grant usage on schema simulation to ${serverRole}`,
  `create or replace function simulation.now() returns timestamptz language sql stable parallel safe as $$
     select coalesce(nullif(current_setting('simulation.now', true), '')::timestamptz, pg_catalog.now()) $$`,
  `create or replace function simulation.clock_timestamp() returns timestamptz language sql stable parallel safe as $$
     select simulation.now() $$`,
  `do $$ declare it record; begin
     for it in select adrelid::regclass as place, attname from pg_attrdef
       join pg_attribute on attrelid = adrelid and attnum = adnum
       join pg_class on pg_class.oid = adrelid
       where relnamespace = 'kb'::regnamespace and pg_get_expr(adbin, adrelid) = 'now()'
     loop execute format('alter table %s alter %I set default simulation.now()', it.place, it.attname); end loop;
     for it in select oid::regprocedure as place from pg_proc where pronamespace = 'kb'::regnamespace and prosrc ~ '(now|clock_timestamp)\\(\\)'
     loop execute format('alter function %s set search_path = simulation, pg_catalog, kb, pg_temp', it.place); end loop;
   end $$`
]

/** Prepares a migrated database; doing it twice changes nothing. */
export const obeyWorldClock = Effect.fnUntraced(
  function* (ownerUrl: Redacted.Redacted) {
    const owner = yield* connect(ownerUrl)
    for (const statement of preparation) yield* owner.query(statement)
  },
  Effect.scoped,
  Effect.orDie
)

/** The instant that each connection was last told. */
const told = new WeakMap<PgConnection.PgConnection, number>()

/** Tells a connection what time it is, unless it knows; to be sent while no transaction is open. */
export const tellTime =
  (nowMs: () => number): Send =>
  (connection) =>
    Effect.suspend(() => {
      const now = nowMs()
      if (told.get(connection) === now) return Effect.void
      told.set(connection, now)
      return connection.query("select set_config('simulation.now', $1, false)", [new Date(now).toISOString()])
    })
