/**
 * Judges an agent's change without making it.
 *
 * Flow: **graph** → outbox → dispatch → run → tool → task
 *
 * A change that could not be made is refused when the agent asks for it, also
 * when it would only be suggested: no person should be asked to approve what
 * cannot be. It reads and locks nothing; the gateway judges again at the write.
 */
import { denies } from "@tropism/domain/capability"
import type { Change } from "@tropism/domain/change"
import type { GraphObject } from "@tropism/domain/graph"
import type { AgentId, ObjectId } from "@tropism/domain/ids"
import { findPropertiesFault } from "@tropism/domain/json"
import { Context, Effect, Layer } from "effect"
import type { ProjectTransaction } from "../database/database.ts"
import { Authorities, type Authority } from "./authority.ts"
import { Objects } from "./objects.ts"
import { type ChangeRefused, refused } from "./refused.ts"

export interface Inspected {
  readonly authority: Authority
  /** The object that the change updates or deletes. */
  readonly target: GraphObject | null
}

export class Inspector extends Context.Service<
  Inspector,
  {
    /** Refuses a change that the agent may not make or that nobody could make now. */
    readonly inspect: (
      change: Change,
      agentId: AgentId
    ) => Effect.Effect<Inspected, ChangeRefused, ProjectTransaction>
  }
>()("@tropism/server/graph/Inspector") {
  static readonly layer = Layer.effect(
    Inspector,
    Effect.gen(function* () {
      const objects = yield* Objects
      const authorities = yield* Authorities

      const existing = Effect.fnUntraced(function* (id: ObjectId, pointer: string) {
        return (yield* objects.get(id)) ?? (yield* refused("notFound", `There is no object ${id}`, pointer))
      })

      /** The objects that a change touches, the target first. */
      const touched = Effect.fnUntraced(function* (change: Change) {
        switch (change.type) {
          case "create": {
            const [taken] =
              change.key === null
                ? []
                : yield* objects.list({ type: change.objectType, key: change.key }, undefined, 1)
            if (taken)
              return yield* refused(
                "keyTaken",
                `There is already a ${change.objectType} with the key ${change.key}: it has the id ${taken.id}`,
                "/key"
              )
            return { target: null, types: [change.objectType] }
          }
          case "update":
          case "delete": {
            const target = yield* existing(change.objectId, "/objectId")
            return { target, types: [target.type] }
          }
          case "createRelationship": {
            const { fromId, toId, type } = change.relationship
            const from = yield* existing(fromId, "/fromId")
            const to = yield* existing(toId, "/toId")
            const known = yield* objects.listRelationships({ type, objectId: fromId }, undefined, 200)
            if (known.some((one) => one.fromId === fromId && one.toId === toId)) {
              return yield* refused(
                "relationshipExists",
                `There is already a ${type} from ${fromId} to ${toId}`
              )
            }
            return { target: null, types: [from.type, to.type] }
          }
          case "deleteRelationship": {
            const relationship = yield* objects.getRelationship(change.relationshipId)
            if (!relationship)
              return yield* refused(
                "notFound",
                `There is no relationship ${change.relationshipId}`,
                "/relationshipId"
              )
            const from = yield* existing(relationship.fromId, "/relationshipId")
            const to = yield* existing(relationship.toId, "/relationshipId")
            return { target: null, types: [from.type, to.type] }
          }
        }
      })

      const inspect = Effect.fn("Inspector.inspect")(function* (change: Change, agentId: AgentId) {
        const authority = yield* authorities.of(agentId)
        if (!authority?.isActive)
          return yield* refused("agentDisabled", "The agent is disabled or deleted and may change nothing")
        if ("data" in change) {
          const fault = findPropertiesFault(change.data)
          if (fault) return yield* refused("invalid", fault.message, fault.pointer)
        }
        const { target, types } = yield* touched(change)
        const denial = denies(authority.capabilities, change.type, types)
        if (denial !== undefined) return yield* refused("notPermitted", denial)
        return { authority, target }
      })

      return Inspector.of({ inspect })
    })
  )
}
