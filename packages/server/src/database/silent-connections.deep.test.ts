/**
 * Connections that fall silent, beside statements that take long.
 */
import { expect, layer } from "@effect/vitest"
import { Effect, Exit, Layer, Logger } from "effect"
import { SqlClient } from "effect/sql"
import { freshDatabase } from "../../testing/fresh-database.ts"
import { operatedDatabase } from "../../testing/operated-database.ts"
import { acquireSilentWay } from "../../testing/silent-way.ts"
import { isBrokenByAway } from "./connection-errors.ts"
import { poolLayer } from "./pool.ts"

/** Longer than whoever takes part stands still on a busy machine. */
const silentMs = 1_500

/** A statement that takes so long that its connection is looked at again and again meanwhile. */
const long = (sql: SqlClient.SqlClient) => sql`select pg_sleep(${(silentMs + 1_000) / 1_000})`

/** A pool behind a way that can fall silent, and the way. */
const behindAWay = Effect.gen(function* () {
  const database = yield* freshDatabase
  const way = yield* acquireSilentWay(database)
  const { serverStartupParameters: startupParameters, serverUrl: url } = way.access
  const pool = poolLayer({ url, startupParameters, silence: { silentMs, silenceLookMs: 50 } })
  const context = yield* Layer.build(pool)
  return { ...way, database, sql: yield* Effect.provideContext(SqlClient.SqlClient, context) }
})

layer(Logger.layer([]), { excludeTestServices: true })("A pool", (it) => {
  it.effect("lets a statement take as long as PostgreSQL works on it", () =>
    Effect.gen(function* () {
      const { sql } = yield* behindAWay
      yield* long(sql)
      // And one that waits for somebody else's lock.
      const locked = sql.withTransaction(Effect.andThen(sql`select pg_advisory_xact_lock(1)`, long(sql)))
      yield* Effect.all([locked, locked], { concurrency: 2 })
    })
  )

  it.effect("lets it where PostgreSQL does not tell what it works on", () =>
    Effect.gen(function* () {
      const { database, sql } = yield* behindAWay
      const { change } = yield* operatedDatabase(database)
      yield* change("set track_activities = off")
      yield* long(sql)
    })
  )

  it.effect("gives up each connection that fell silent, at work or not, and its transaction with it", () =>
    Effect.gen(function* () {
      const { fallSilent, sql } = yield* behindAWay
      const pid = Effect.map(sql<{ pid: number }>`select pg_backend_pid() as pid`, ([row]) => row?.pid)
      const before = yield* Effect.all(
        Array.from({ length: 5 }, () => Effect.tap(pid, () => sql`select pg_sleep(0.1)`)),
        { concurrency: 5 }
      )
      const broken = yield* Effect.exit(
        sql.withTransaction(Effect.andThen(Effect.andThen(pid, fallSilent), pid))
      )
      expect(Exit.isFailure(broken) && isBrokenByAway(broken.cause)).toBe(true)
      const after = yield* Effect.all(
        Array.from({ length: 5 }, () => pid),
        { concurrency: 5 }
      )
      expect(before).toHaveLength(5)
      for (const one of after) expect(before).not.toContain(one)
    })
  )
})
