/**
 * Holds what a change is about, so that it can be judged before it is made.
 *
 * Flow: **graph** → outbox → dispatch → run → tool → task
 *
 * What is held stays as it is until the transaction ends: nobody changes or
 * deletes it, and nothing new is tied to an object that is to be deleted. Nothing
 * is read here, and what is not there is not held. A new object has nothing to
 * hold; its key is decided by the database when it is written.
 */
import type { Change } from "@tropism/domain/change"
import { Effect } from "effect"
import { SqlClient } from "effect/sql"
import { ProjectTransaction } from "../database/database.ts"

export const makeHolding = Effect.gen(function* () {
  const sql = yield* SqlClient.SqlClient

  /** The mode of each lock is the one that the gateway's own statement takes, so none is raised later. */
  return Effect.fnUntraced(function* (change: Change) {
    const { projectId } = yield* ProjectTransaction
    switch (change.type) {
      case "create":
        return
      case "update":
        yield* sql`select 1 from kb.graph_objects where id = ${change.objectId} and project_id = ${projectId} for no key update`
        return
      case "delete":
        yield* sql`select 1 from kb.graph_objects where id = ${change.objectId} and project_id = ${projectId} for update`
        return
      case "createRelationship": {
        const { fromId, toId } = change.relationship
        yield* sql`
          select 1 from kb.graph_objects where id = any(${[fromId, toId]}::uuid[]) and project_id = ${projectId}
          order by id for key share`
        return
      }
      case "updateRelationship":
        yield* sql`
          select 1 from kb.graph_relationships where id = ${change.relationshipId} and project_id = ${projectId} for no key update`
        return
      case "deleteRelationship":
        yield* sql`select 1 from kb.graph_relationships where id = ${change.relationshipId} and project_id = ${projectId} for update`
    }
  })
})
