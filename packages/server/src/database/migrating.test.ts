/**
 * What a start says when the database cannot be brought to the program's schema.
 */
import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import { freshDatabase, unmigratedDatabase } from "../../testing/fresh-database.ts"
import { ask } from "../../testing/owner-rows.ts"
import { schemaVersion } from "./migrations.ts"
import { migrate } from "./schema.ts"

describe("bringing a database to the schema", () => {
  it.live("refuses a database that a newer program has made, and changes nothing", () =>
    Effect.gen(function* () {
      const access = yield* freshDatabase
      yield* ask(access, "insert into tropism_migrations (migration_id, name) values (9999, 'later')")
      const refused = yield* Effect.flip(migrate(access.ownerUrl))
      assert.strictEqual(refused.reason, "newer")
      assert.include(refused.message, "9999")
      assert.include(refused.message, String(schemaVersion))
    })
  )

  it.live("says which migration failed and why, and leaves nothing behind", () =>
    Effect.gen(function* () {
      const access = yield* unmigratedDatabase
      yield* ask(access, "create schema kb")
      yield* ask(access, "create table kb.tasks (id int)")
      const refused = yield* Effect.flip(migrate(access.ownerUrl))
      assert.strictEqual(refused.reason, "failed")
      assert.include(refused.message, "1_house")
      assert.include(refused.message, 'relation "tasks" already exists')
      assert.notMatch(refused.message, /\n\s*at /)
      assert.deepStrictEqual(
        yield* ask(access, "select count(*)::int from information_schema.tables where table_schema = 'kb'"),
        [[1]]
      )
      yield* ask(access, "drop table kb.tasks")
      yield* migrate(access.ownerUrl)
    })
  )
})
