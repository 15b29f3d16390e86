/**
 * Every service on a database that its owner has filled: for what is counted where much lies stored.
 */
import { NodeServices } from "@effect/platform-node"
import { Effect, Layer } from "effect"
import { poolLayer } from "../src/database/pool.ts"
import { Ids } from "../src/ids.ts"
import { Models } from "../src/models/models.ts"
import { platformLayer } from "../src/platform.ts"
import { freshDatabase } from "./fresh-database.ts"
import { ask } from "./owner-rows.ts"

/** The services, once these statements have run one after the other; no loop is at work. */
export const filledBy = (filling: ReadonlyArray<string>) =>
  Layer.unwrap(
    Effect.gen(function* () {
      const access = yield* freshDatabase
      for (const statement of filling) yield* ask(access, statement)
      const pool = poolLayer({ url: access.serverUrl, startupParameters: access.serverStartupParameters })
      return platformLayer.pipe(
        Layer.provideMerge(Layer.mergeAll(pool, Ids.layer, Models.layer)),
        Layer.provide(NodeServices.layer)
      )
    })
  )
