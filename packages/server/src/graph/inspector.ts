/**
 * Checks an agent's change without making it.
 *
 * An impossible change is refused when the agent requests it, even as a suggestion, so that no person is asked to
 * approve it. Reads without locks; the gateway checks again at the write.
 */
import { denies, deniesCascade } from "@tropism/domain/capability"
import type { Change } from "@tropism/domain/change"
import type { GraphObject, Relationship } from "@tropism/domain/graph"
import type { AgentId, ObjectId, RelationshipId, RunId } from "@tropism/domain/ids"
import { findPropertiesFault, namelessFault } from "@tropism/domain/json"
import { Context, Effect, Layer } from "effect"
import { SqlClient } from "effect/sql"
import { ProjectTransaction } from "../database/database.ts"
import { Authorities, type Authority, explainDenial, inactiveSentence } from "./authority.ts"
import {
  type ChangeRefused,
  expectTwoEnds,
  keyTaken,
  noObject,
  noRelationship,
  refused,
  relationshipExists
} from "./change-refused.ts"
import type { Moment } from "./moments.ts"
import { Objects } from "./objects.ts"
import { Relationships } from "./relationships.ts"

export interface Inspected {
  readonly authority: Authority
  /** The object that the change updates or deletes. */
  readonly target: GraphObject | null
  /** The relationship that the change updates or deletes. */
  readonly relationship: Relationship | null
}

export class Inspector extends Context.Service<
  Inspector,
  {
    /** Refuses a change that the agent may not make in its run, or that is impossible now or at an instant. */
    readonly inspect: (
      change: Change,
      agentId: AgentId,
      runId: RunId,
      asOf?: Moment
    ) => Effect.Effect<Inspected, ChangeRefused, ProjectTransaction>
  }
>()("@tropism/server/graph/Inspector") {
  static readonly layer = Layer.effect(
    Inspector,
    Effect.gen(function* () {
      const objects = yield* Objects
      const relationships = yield* Relationships
      const authorities = yield* Authorities

      const objectAt = (id: ObjectId, asOf: Moment) =>
        asOf === undefined ? objects.get(id) : objects.asOf(id, asOf)

      const existing = Effect.fnUntraced(function* (id: ObjectId, pointer: string, asOf: Moment) {
        return (
          (yield* objectAt(id, asOf)) ?? (yield* refused("notFound", `There is no object ${id}`, pointer))
        )
      })

      /** Returns the relationship with the types of its ends. */
      const related = Effect.fnUntraced(function* (id: RelationshipId, asOf: Moment) {
        const relationship = yield* asOf === undefined ? relationships.get(id) : relationships.asOf(id, asOf)
        if (!relationship) return yield* noRelationship(id)
        const from = yield* existing(relationship.fromId, "/relationshipId", asOf)
        const to = yield* existing(relationship.toId, "/relationshipId", asOf)
        return { target: null, relationship, types: [from.type, to.type] }
      })

      /** Returns the entities that a change touches and the types it is judged by. */
      const touched = Effect.fnUntraced(function* (change: Change, asOf: Moment) {
        switch (change.type) {
          case "create": {
            const [taken] =
              change.key === null
                ? []
                : yield* objects.list(
                    { type: change.objectType, key: change.key, asOf },
                    "createdAt",
                    undefined,
                    1
                  )
            if (taken) return yield* keyTaken(change.objectType, change.key, taken.object.id)
            return { target: null, relationship: null, types: [change.objectType] }
          }
          case "update":
          case "delete": {
            const target = yield* objectAt(change.objectId, asOf)
            if (!target) return yield* noObject(change.objectId)
            return { target, relationship: null, types: [target.type] }
          }
          case "createRelationship": {
            const { fromId, toId, type } = change.relationship
            yield* expectTwoEnds(change.relationship)
            const from = yield* existing(fromId, "/fromId", asOf)
            const to = yield* existing(toId, "/toId", asOf)
            const [known] = yield* relationships.list({ type, fromId, toId, asOf }, undefined, 1)
            if (known) return yield* relationshipExists(change.relationship, known.id)
            return { target: null, relationship: null, types: [from.type, to.type] }
          }
          case "updateRelationship":
          case "deleteRelationship":
            return yield* related(change.relationshipId, asOf)
        }
      })

      /** Returns why the agent may not make the change. */
      const denialOf = Effect.fnUntraced(function* (
        { capabilities }: Authority,
        change: Change,
        types: ReadonlyArray<string>,
        asOf: Moment
      ) {
        const denial = denies(capabilities, change.type, types)
        if (denial !== undefined || change.type !== "delete" || capabilities === null) return denial
        return deniesCascade(capabilities, yield* relationships.kindsAround(change.objectId, asOf))
      })

      const inspect = Effect.fn("Inspector.inspect")(function* (
        change: Change,
        agentId: AgentId,
        runId: RunId,
        asOf?: Moment
      ) {
        const authority = yield* authorities.of(agentId, runId, false)
        if (!authority?.isActive) return yield* refused("agentDisabled", inactiveSentence(authority))
        if ("data" in change) {
          const isPatch = change.type === "update" || change.type === "updateRelationship"
          const fault = namelessFault(change.data, isPatch) ?? findPropertiesFault(change.data)
          if (fault) return yield* refused("invalid", fault.message, fault.pointer)
        }
        const { target, relationship, types } = yield* touched(change, asOf)
        const denial = yield* denialOf(authority, change, types, asOf)
        if (denial !== undefined) return yield* refused("notPermitted", explainDenial(authority, denial))
        return { authority, target, relationship }
      })

      return Inspector.of({ inspect })
    })
  )
}

// Locks the target of a change, so that it can be judged before it is made.
//
// Until the transaction ends the target is neither changed nor deleted, and an object to be deleted gets no new relationships.
// Nothing is read here; a missing target is not locked. A new object needs no lock, because the unique index decides its key.

export const makeFencing = Effect.gen(function* () {
  const sql = yield* SqlClient.SqlClient

  /** Takes each lock in the mode of the gateway's own statement, so that no lock is upgraded later. */
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
