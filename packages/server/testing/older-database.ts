/**
 * A database as an earlier version of this program left it: its schema, and every row that it wrote.
 *
 * The rows in `older-rows` were written by the programs of those days: the
 * demo's agents at work, suggestions decided and undone, a chat. What logs
 * somebody in is left out.
 */
import { readFileSync } from "node:fs"
import { PgClient } from "@effect/sql-pg"
import { Effect, Record as Records, Redacted } from "effect"
import { Migrator } from "effect/sql"
import { inject } from "vitest"
import { migrations } from "../src/database/migrations.ts"
import { connect, type PostgresAccess, withDatabase } from "../src/database/postgres-access.ts"
import { unmigratedDatabase } from "./fresh-database.ts"
import { ask } from "./owner-rows.ts"

interface OlderRow {
  readonly table: string
  readonly row: Readonly<Record<string, unknown>>
}

const readRows = (version: number): ReadonlyArray<OlderRow> =>
  readFileSync(new URL(`./older-rows/${String(version).padStart(4, "0")}.jsonl`, import.meta.url), "utf8")
    .trim()
    .split("\n")
    .map((line) => JSON.parse(line))

/** Runs the migrations up to one, as the program did whose newest it was. */
const migrateUpTo = (access: PostgresAccess, version: number) =>
  Migrator.make({})({
    loader: Migrator.fromRecord(
      Records.filter(migrations, (_, name) => Number.parseInt(name, 10) <= version)
    ),
    table: "tropism_migrations"
  }).pipe(Effect.provide(PgClient.layer({ url: access.ownerUrl, maxConnections: 1 })), Effect.orDie)

/** Writes the rows past all triggers and keys: they were judged when they were written. */
const load = (access: PostgresAccess, rows: ReadonlyArray<OlderRow>) =>
  Effect.scoped(
    Effect.gen(function* () {
      const name = new URL(Redacted.value(access.ownerUrl)).pathname.slice(1)
      const admin = yield* connect(withDatabase(Redacted.make(inject("postgres").adminUrl), name))
      yield* admin.query("set session_replication_role = replica")
      for (const [table, its] of Map.groupBy(rows, (one) => one.table)) {
        const [[names] = []] = yield* admin.queryValues(
          `select string_agg(quote_ident(attname), ', ') from pg_attribute
           where attrelid = 'kb.${table}'::regclass and attnum > 0 and not attisdropped and attgenerated = '' and attname = any($1)`,
          [Object.keys(its[0]?.row ?? {})]
        )
        yield* admin.query(
          `insert into kb.${table} (${String(names)}) overriding system value
           select ${String(names)} from jsonb_populate_recordset(null::kb.${table}, $1::text::jsonb)`,
          [JSON.stringify(its.map(({ row }) => row))]
        )
      }
    })
  ).pipe(Effect.orDie)

/** A database of the schema `version`, with rows of its time. */
export const olderDatabase = Effect.fnUntraced(function* (version: number) {
  const access = yield* unmigratedDatabase
  yield* migrateUpTo(access, version)
  yield* load(access, readRows(version))
  return access
})

/** Every row of every table of the program, as JSON. */
export const everyRow = Effect.fnUntraced(function* (access: PostgresAccess) {
  const tables = yield* ask(
    access,
    "select table_name from information_schema.tables where table_schema = 'kb' and table_type = 'BASE TABLE' order by 1"
  )
  const rows = yield* Effect.forEach(tables, ([table]) =>
    Effect.map(ask(access, `select to_jsonb(t) from kb.${String(table)} t`), (found) =>
      found.map(([row]) => ({ table: String(table), row: row as Readonly<Record<string, unknown>> }))
    )
  )
  return rows.flat()
})
