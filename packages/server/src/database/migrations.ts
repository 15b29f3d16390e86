/**
 * Brings a database to the schema that this program needs.
 *
 * Flow: graph → outbox → dispatch → run → tool → task, all on **database**
 *
 * Migrations run as the owner, once each, in order, under a lock that effect's
 * Migrator takes; two programs that start at once do not disturb each other. A
 * migration is one transaction, so an interrupted first start leaves nothing.
 */
import { PgClient } from "@effect/sql-pg"
import { Effect, type Redacted } from "effect"
import { Migrator, SqlClient } from "effect/sql"
import { statements as house } from "./migrations/0001-house.ts"
import { statements as agents } from "./migrations/0004-agents.ts"

const run = (statements: ReadonlyArray<string>) =>
  Effect.gen(function* () {
    const sql = yield* SqlClient.SqlClient
    for (const statement of statements) yield* sql.unsafe(statement)
  })

const loader = Migrator.fromRecord({ "0001_house": run(house), "0004_agents": run(agents) })

/** Runs what has not run yet on the database of `ownerUrl`. Fails with the SqlError of a broken statement. */
export const migrate = (ownerUrl: Redacted.Redacted) =>
  Migrator.make({})({ loader, table: "tropism_migrations" }).pipe(
    Effect.provide(PgClient.layer({ url: ownerUrl, maxConnections: 1 })),
    Effect.scoped
  )
