/**
 * Copies of the template database are alone, migrated and dropped.
 */
import { assert, describe, inject, it } from "@effect/vitest"
import { Effect, Redacted } from "effect"
import { connect, serverRole } from "../src/database/postgres-access.ts"
import { freshDatabase } from "./fresh-database.ts"

const ask = (url: Redacted.Redacted<string>, statement: string) =>
  Effect.scoped(Effect.flatMap(connect(url), (connection) => connection.queryValues(statement))).pipe(
    Effect.orDie
  )

const databases = ask(
  Redacted.make(inject("postgres").adminUrl),
  "select datname from pg_database order by 1"
).pipe(Effect.map((rows) => rows.map(([name]) => String(name))))

describe("a fresh database", () => {
  it.live("has the migrated tables, is nobody else's, and is dropped with its scope", () =>
    Effect.gen(function* () {
      const name = yield* Effect.scoped(
        Effect.gen(function* () {
          const [one, two] = yield* Effect.all([freshDatabase, freshDatabase], { concurrency: 2 })
          yield* ask(one.ownerUrl, "create table only_here (n int)")
          const here = "select to_regclass('only_here') is not null, to_regclass('kb.projects') is not null"
          assert.deepStrictEqual(yield* ask(one.ownerUrl, here), [[true, true]])
          assert.deepStrictEqual(yield* ask(two.ownerUrl, here), [[false, true]])
          const [row] = yield* ask(one.serverUrl, "select current_user, current_database()")
          assert.strictEqual(row?.[0], serverRole)
          assert.include(yield* databases, row?.[1])
          return String(row?.[1])
        })
      )
      assert.notInclude(yield* databases, name)
    })
  )

  it.live("is dropped although somebody is still connected", () =>
    Effect.gen(function* () {
      const name = yield* Effect.scoped(
        Effect.gen(function* () {
          const { serverUrl } = yield* freshDatabase
          const connection = yield* connect(serverUrl)
          const [row] = yield* connection.queryValues("select current_database()")
          const name = String(row?.[0])
          assert.include(yield* databases, name)
          return name
        })
      )
      // Other files make databases beside this one.
      assert.notInclude(yield* databases, name)
    })
  )
})
