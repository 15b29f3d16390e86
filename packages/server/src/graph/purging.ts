/**
 * Removes what is deleted for good; only a person's explicit wish leads here.
 *
 * Flow: **graph** → outbox → dispatch → run → tool → task
 *
 * The server has no right to delete a row of the graph. The migration's functions
 * have, for what is deleted already, and they leave a record of who did it. The
 * version that the caller expects is compared under the lock that the purge needs.
 */
import type { DeleteObject, DeleteRelationship } from "@tropism/domain/change"
import type { UserId } from "@tropism/domain/ids"
import { Effect } from "effect"
import { SqlClient } from "effect/sql"
import { onlyRow, ProjectTransaction } from "../database/database.ts"
import { Ids } from "../ids.ts"
import type { makeObjectWrites } from "./object-writes.ts"
import { type ChangeRefused, expectVersion, noObject, noRelationship } from "./refused.ts"
import type { makeRelationshipWrites } from "./relationship-writes.ts"

export const makePurging = Effect.fnUntraced(function* (
  objects: Effect.Success<typeof makeObjectWrites>,
  relationships: Effect.Success<typeof makeRelationshipWrites>
) {
  const sql = yield* SqlClient.SqlClient
  const ids = yield* Ids

  /** Waits for whoever dispatches: what they have read is in the log then, and goes with the rest. Before anything else is held, or both would wait. */
  const holdFeed = Effect.gen(function* () {
    const { projectId } = yield* ProjectTransaction
    yield* sql`select from kb.feeds where project_id = ${projectId} for share`
  })

  const object = Effect.fnUntraced(function* <A, R>(
    { objectId: id, expectedVersion }: DeleteObject,
    by: UserId,
    deletion: Effect.Effect<A, ChangeRefused, R>
  ) {
    yield* holdFeed
    const isGone = yield* wasGone(deletion)
    if (isGone) {
      const row = yield* objects.lock(id, true)
      if (!row) return yield* noObject(id)
      yield* expectVersion("object", expectedVersion, row.version)
    }
    const { purged } = yield* Effect.flatMap(
      sql<{
        readonly purged: boolean
      }>`select kb.purge_object(${yield* ids.next}::uuid, ${id}::uuid, ${by}) as purged`,
      onlyRow
    )
    if (!purged) return yield* noObject(id)
  })

  const relationship = Effect.fnUntraced(function* <A, R>(
    { relationshipId: id, expectedVersion }: DeleteRelationship,
    by: UserId,
    deletion: Effect.Effect<A, ChangeRefused, R>
  ) {
    yield* holdFeed
    const isGone = yield* wasGone(deletion)
    if (isGone) {
      const row = yield* relationships.lock(id, true)
      if (!row) return yield* noRelationship(id)
      yield* expectVersion("relationship", expectedVersion, row.version)
    }
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

/** Deletes what is there, at the version that the caller expects; true where nothing is there any more. */
const wasGone = <A, R>(deletion: Effect.Effect<A, ChangeRefused, R>) =>
  Effect.catchIf(
    Effect.map(deletion, () => false),
    (refusal: ChangeRefused) => refusal.reason === "notFound",
    () => Effect.succeed(true)
  )
