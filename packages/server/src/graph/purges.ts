/**
 * Reads what was purged: that it was, who removed it and when.
 *
 * Flow: **graph** → outbox → dispatch → run → tool → task
 */
import type { Purge } from "@tropism/domain/graph"
import { Context, Effect, Layer } from "effect"
import { SqlClient } from "effect/sql"
import { orDie, ProjectTransaction } from "../database/database.ts"

export class Purges extends Context.Service<
  Purges,
  {
    /** The records of purges, newest first, after the one whose id is `before`. */
    readonly list: (
      before: string | undefined,
      limit: number
    ) => Effect.Effect<ReadonlyArray<Purge>, never, ProjectTransaction>
    /** The record of one object or relationship; a relationship that went with an object has none. */
    readonly of: (entityId: string) => Effect.Effect<Purge | undefined, never, ProjectTransaction>
  }
>()("@tropism/server/graph/Purges") {
  static readonly layer = Layer.effect(
    Purges,
    Effect.gen(function* () {
      const sql = yield* SqlClient.SqlClient
      const list = Effect.fn("Purges.list")(function* (before: string | undefined, limit: number) {
        const { projectId } = yield* ProjectTransaction
        const rows = yield* sql<PurgeRow>`
          select * from kb.graph_purges where project_id = ${projectId}
            ${before === undefined ? sql`` : sql`and id < ${before}::uuid`} order by id desc limit ${limit}`
        return rows.map(toPurge)
      }, orDie)
      const of = Effect.fn("Purges.of")(function* (entityId: string) {
        const { projectId } = yield* ProjectTransaction
        const [row] = yield* sql<PurgeRow>`
          select * from kb.graph_purges where project_id = ${projectId} and entity_id = ${entityId}`
        return row && toPurge(row)
      }, orDie)
      return Purges.of({ list, of })
    })
  )
}

interface PurgeRow extends Omit<Purge, "purgedAt"> {
  readonly purgedAt: Date
}

const toPurge = (row: PurgeRow): Purge => ({
  id: row.id,
  entityType: row.entityType,
  entityId: row.entityId,
  objectType: row.objectType,
  purgedBy: row.purgedBy,
  versions: row.versions,
  relationships: row.relationships,
  purgedAt: row.purgedAt.toISOString()
})
