/**
 * Removes what is deleted for good; only a person's explicit wish leads here.
 *
 * Flow: **graph** → outbox → dispatch → run → tool → task
 *
 * The server has no right to delete a row of the graph. The migration's functions
 * have, for what is deleted already, and they leave a record of who did it.
 */
import type { ObjectId, RelationshipId, UserId } from "@tropism/domain/ids"
import { Effect } from "effect"
import { SqlClient } from "effect/sql"
import { onlyRow } from "../database/database.ts"
import { Ids } from "../ids.ts"
import { type ChangeRefused, noObject, noRelationship } from "./refused.ts"

export const makePurging = Effect.gen(function* () {
  const sql = yield* SqlClient.SqlClient
  const ids = yield* Ids

  /** Deletes what is not deleted yet; that it is gone already is no obstacle. */
  const deletedFirst = <A, R>(deletion: Effect.Effect<A, ChangeRefused, R>) =>
    Effect.catchIf(
      Effect.asVoid(deletion),
      (refusal) => refusal.reason === "notFound",
      () => Effect.void
    )

  const object = Effect.fnUntraced(function* <A, R>(
    id: ObjectId,
    by: UserId,
    deletion: Effect.Effect<A, ChangeRefused, R>
  ) {
    yield* deletedFirst(deletion)
    const { purged } = yield* Effect.flatMap(
      sql<{
        readonly purged: boolean
      }>`select kb.purge_object(${yield* ids.next}::uuid, ${id}::uuid, ${by}) as purged`,
      onlyRow
    )
    if (!purged) return yield* noObject(id)
  })

  const relationship = Effect.fnUntraced(function* <A, R>(
    id: RelationshipId,
    by: UserId,
    deletion: Effect.Effect<A, ChangeRefused, R>
  ) {
    yield* deletedFirst(deletion)
    const { purged } = yield* Effect.flatMap(
      sql<{
        readonly purged: boolean
      }>`select kb.purge_relationship(${yield* ids.next}::uuid, ${id}::uuid, ${by}) as purged`,
      onlyRow
    )
    if (!purged) return yield* noRelationship(id)
  })

  return { object, relationship }
})
