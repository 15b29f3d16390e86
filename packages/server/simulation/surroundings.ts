/**
 * What the simulations of one process share: connections to one PostgreSQL, and the models.
 *
 * Connections are opened when they are first needed and lent again; they carry
 * nothing from one borrower to the next. The models are the server's own; the
 * agents of a simulation only ask scripts.
 */
import * as NodeServices from "@effect/platform-node/NodeServices"
import { PgConnection } from "@effect/sql-pg"
import { Context, Effect, Exit, Layer, Logger, type Redacted, Scope } from "effect"
import type { PostgresAccess } from "../src/database/postgres-access.ts"
import { Models } from "../src/models/models.ts"
import { obeyWorldClock, timeStartupParameters } from "./database-clock.ts"
import type { Surroundings } from "./simulate.ts"
import type { Lender } from "./line.ts"

/** Opens what simulations on a database need, until the scope ends. */
export const openSurroundings = Effect.fn("openSurroundings")(function* (access: PostgresAccess) {
  yield* obeyWorldClock(access.ownerUrl)
  const serverLender = yield* lend(access.serverUrl, access.serverStartupParameters)
  const ownerLender = yield* lend(access.ownerUrl, {})
  const own = yield* Layer.build(Models.layer).pipe(Effect.provide([NodeServices.layer, Logger.layer([])]))
  const models = Context.get(own, Models)
  const observer = yield* PgConnection.make({ url: access.ownerUrl })
  const blockersOf = (processId: number) =>
    Effect.runPromise(
      Effect.map(observer.queryValues("select unnest(pg_blocking_pids($1))", [processId]), (rows) =>
        rows.map(([blocker]) => Number(blocker))
      )
    )
  return { models, serverLender, ownerLender, blockersOf } satisfies Surroundings
})

const lend = Effect.fnUntraced(function* (
  url: Redacted.Redacted,
  startupParameters: Readonly<Record<string, string>>
) {
  const scope = yield* Effect.acquireRelease(Scope.make(), (made) => Scope.close(made, Exit.void))
  const idle: Array<PgConnection.PgConnection> = []
  const open = PgConnection.make({
    url,
    startupParameters: { ...startupParameters, ...timeStartupParameters },
    applicationName: "tropism",
    // What a transaction begins with goes out in one write, and no statement is parsed twice.
    multiplex: true,
    preparedStatementCacheSize: 1_000
  }).pipe(Effect.provideService(Scope.Scope, scope))
  const lender: Lender = {
    borrow: async () => idle.pop() ?? (await Effect.runPromise(open)),
    takeBack: (connection) => void idle.push(connection)
  }
  return lender
})
