/**
 * What a transaction answers whose connection breaks.
 */
import { expect, it } from "@effect/vitest"
import type { ProjectId } from "@tropism/domain/ids"
import { Cause, Effect, Exit, Layer, Redacted } from "effect"
import { SqlClient, SqlError } from "effect/sql"
import { inject } from "vitest"
import { freshDatabase } from "../../testing/fresh-database.ts"
import { Database } from "./database.ts"
import { poolLayer } from "./pool.ts"
import { connect } from "./postgres-access.ts"

it.live("what came to nothing and could not be rolled back is told as what broke", () =>
  Effect.gen(function* () {
    const { serverStartupParameters: startupParameters, serverUrl: url } = yield* freshDatabase
    const admin = yield* connect(Redacted.make(inject("postgres").adminUrl))
    const broken = Effect.gen(function* () {
      const sql = yield* SqlClient.SqlClient
      const database = yield* Database
      const refused = Effect.gen(function* () {
        const [own] = yield* sql<{ pid: number }>`select pg_backend_pid() as pid`
        yield* admin.query("select pg_terminate_backend($1)", [own?.pid])
        return yield* Effect.fail("refused" as const)
      })
      return yield* Effect.exit(
        database.inProject(
          "00000000-0000-0000-0000-000000000001" as ProjectId,
          Effect.catch(database.attempt(refused), () => Effect.succeed("went on"))
        )
      )
    }).pipe(Effect.provide(Layer.provideMerge(Database.layer, poolLayer({ url, startupParameters }))))
    const exit = yield* broken
    expect(Exit.isFailure(exit) && Cause.squash(exit.cause)).toBeInstanceOf(SqlError.SqlError)
  }).pipe(Effect.scoped)
)
