/**
 * Brings back what was deleted: a new version with the content of the last.
 *
 * Flow: **graph** → outbox → dispatch → run → tool → task
 *
 * It counts as created, because whoever follows the feed has forgotten it. Locks
 * are taken as in a deletion, the object before its relationships.
 */
import type { ObjectId, RelationshipId } from "@tropism/domain/ids"
import { Effect } from "effect"
import { brokenUniqueKey } from "../database/database.ts"
import type { makeObjectWrites } from "./object-writes.ts"
import type { Author } from "./recording.ts"
import { notDeleted, refused } from "./refused.ts"
import type { makeRelationshipWrites } from "./relationship-writes.ts"

export const makeRestoring = (
  objects: Effect.Success<typeof makeObjectWrites>,
  relationships: Effect.Success<typeof makeRelationshipWrites>
) => {
  const object = Effect.fnUntraced(function* (id: ObjectId, author: Author, isAlone = false) {
    const deleted = yield* objects.lock(id, true)
    if (!deleted) return yield* notDeleted("object", id, "/objectId")
    const fallen = isAlone ? [] : yield* relationships.lockFallen(id)
    const restored = yield* refuseTaken(
      objects.restore(id, author),
      `Another ${deleted.type} has the key ${deleted.key} now: delete it, or change this one's place`
    )
    yield* refuseTaken(
      relationships.turnAll(fallen, "created", author),
      "A relationship like one of this object's was made meanwhile"
    )
    return restored
  })

  const relationship = Effect.fnUntraced(function* (id: RelationshipId, author: Author) {
    const deleted = yield* relationships.find(id, true)
    if (!deleted) return yield* notDeleted("relationship", id, "/relationshipId")
    const { fromId, toId, type } = deleted
    const ends = yield* relationships.holdEnds([fromId, toId])
    const missing = [fromId, toId].find((end) => !ends.some((one) => one.id === end))
    if (missing !== undefined)
      return yield* refused("state", `Its object ${missing} is deleted: restore that first`)
    if (!(yield* relationships.lock(id, true)))
      return yield* notDeleted("relationship", id, "/relationshipId")
    const restored = yield* refuseTaken(
      relationships.turn(id, "created", author),
      `There is already a ${type} from ${fromId} to ${toId}`
    )
    return restored ?? (yield* notDeleted("relationship", id, "/relationshipId"))
  })

  return { object, relationship }
}

/** Says a broken unique key as a refusal. */
const refuseTaken = <A, E, R>(write: Effect.Effect<A, E, R>, sentence: string) =>
  Effect.catchIf(
    write,
    (error): error is E => brokenUniqueKey(error as never) !== undefined,
    (error) =>
      Effect.fail(
        refused(
          brokenUniqueKey(error as never) === "graph_objects_key" ? "keyTaken" : "relationshipExists",
          sentence
        )
      )
  )
