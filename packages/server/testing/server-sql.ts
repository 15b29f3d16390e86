/**
 * The server's own way to the database, for tests of statements that are no door's.
 */
import { Effect, Layer } from "effect"
import { poolLayer } from "../src/database/pool.ts"
import { freshDatabase } from "./fresh-database.ts"

/** A pool on a database of its own, logged in as the server. */
export const serverSql = Layer.unwrap(
  Effect.map(freshDatabase, ({ serverUrl, serverStartupParameters }) =>
    poolLayer({ url: serverUrl, startupParameters: serverStartupParameters })
  )
)
