/**
 * A server that starts while somebody reads the whole database for long, as `pg_dump` does.
 */
import { describe, expect, it } from "@effect/vitest"
import { Effect, Fiber, Logger } from "effect"
import { schemaVersion } from "../src/database/migrations.ts"
import { migrate } from "../src/database/schema.ts"
import type { PostgresAccess } from "../src/database/postgres-access.ts"
import { freshDatabase } from "../testing/fresh-database.ts"
import { keptLines } from "../testing/kept-lines.ts"
import { olderDatabase } from "../testing/older-database.ts"
import { ask, holding } from "../testing/owner-rows.ts"
import { eventually, newProject, startServer } from "../testing/platform.ts"
import { naming } from "../testing/naming.ts"

/** Reads tables in one transaction, by the name of a program. */
const reading = (access: PostgresAccess, program: string, tables: string) =>
  holding(access, `set application_name = '${program}'`, `lock table ${tables} in access share mode`)

/** Reads as `pg_dump` does: every table. */
const dumping = Effect.fnUntraced(function* (access: PostgresAccess) {
  const [row] = yield* ask(
    access,
    "select string_agg(format('%I.%I', schemaname, tablename), ', ') from pg_tables where tableowner = current_user"
  )
  return yield* reading(access, "pg_dump", String(row?.[0]))
})

/** Waits until somebody waits for a table. */
const whenQueued = (access: PostgresAccess) =>
  eventually(
    ask(access, "select from pg_locks where not granted and relation is not null"),
    (queued) => queued.length > 0
  )

const versionOf = (access: PostgresAccess) =>
  Effect.map(ask(access, "select max(migration_id) from tropism_migrations"), ([row]) => row?.[0])

describe("A server that starts while the database is dumped", () => {
  it.live("works, where the schema is its own", () =>
    Effect.gen(function* () {
      const access = yield* freshDatabase
      yield* dumping(access)
      const story = yield* newProject(yield* startServer(access), access)
      expect((yield* story.post("/objects", { type: "Thing", properties: {} })).type).toBe("Thing")
    })
  )

  it.live("says who has the tables when it has waited for long, and has changed nothing", () =>
    Effect.gen(function* () {
      const access = yield* olderDatabase(30)
      yield* dumping(access)
      const refused = yield* Effect.flip(migrate(access.ownerUrl, 0))
      expect(refused.reason).toBe("held")
      expect(refused.message).toEqual(naming("pg_dump", /\d+/))
      expect(yield* versionOf(access)).toBe(30)
    })
  )
})

describe("A server that changes the schema while somebody reads runs for long", () => {
  it.live("keeps nobody else from them meanwhile, and changes them when they are let go", () =>
    Effect.gen(function* () {
      const access = yield* olderDatabase(30)
      const reader = yield* reading(access, "report", "kb.agent_runs")
      const { codes, logger, said } = keptLines()
      const starting = yield* Effect.forkScoped(startServer(access, [logger]))
      // Nobody can say which of the two is first.
      const besides = yield* Effect.forkScoped(
        Effect.provide(migrate(access.ownerUrl), Logger.layer([logger]))
      )
      for (let time = 0; time < 2; time += 1) {
        yield* whenQueued(access)
        // Who comes behind it waits no longer than it does.
        expect(yield* ask(access, "select count(*) >= 0 from kb.agent_runs")).toEqual([[true]])
      }
      yield* eventually(
        Effect.sync(() => said[codes.indexOf("tablesHeld")]),
        (line) => line?.includes("report") === true
      )
      yield* reader.query("commit")
      yield* Fiber.join(besides)
      const story = yield* newProject(yield* Fiber.join(starting), access)
      expect((yield* story.post("/objects", { type: "Thing", properties: {} })).type).toBe("Thing")
      expect(yield* versionOf(access)).toBe(schemaVersion)
    })
  )
})
