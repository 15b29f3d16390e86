/**
 * The one writer of the graph: object, history and event in one transaction.
 *
 * Flow: **graph** → outbox → dispatch → run → tool → task
 *
 * Users, agents, imports and approvals all come through `apply`. It holds the
 * wall that no door can forget: an agent's change is checked against what the
 * agent may do now, and an agent in suggest mode changes nothing that no person
 * approved. A change that changes nothing makes no version and no event.
 */
import type { Actor, Cause } from "@tropism/domain/actor"
import { denies } from "@tropism/domain/capability"
import type {
  Change,
  CreateObject,
  CreateRelationship,
  DeleteObject,
  DeleteRelationship,
  UpdateObject
} from "@tropism/domain/change"
import type { ChangeType, GraphObject, Relationship } from "@tropism/domain/graph"
import type { AgentId, GraphEventId, ObjectId, RelationshipId } from "@tropism/domain/ids"
import {
  canonicalJson,
  changedProperties,
  findFault,
  findPropertiesFault,
  isJsonObject,
  mergePatch,
  type Properties
} from "@tropism/domain/json"
import { Context, Effect, Layer } from "effect"
import { SqlClient } from "effect/sql"
import { CrashPoint } from "../crash-point.ts"
import { onlyRow, orDie, ProjectTransaction } from "../database/database.ts"
import { Ids } from "../ids.ts"
import { WakeUps } from "../outbox/wake-ups.ts"
import { Authorities } from "./authority.ts"
import { type ChangeRefused, refused } from "./refused.ts"
import { type ObjectRow, type RelationshipRow, toObject, toRelationship } from "./rows.ts"

/** Who makes a change and why. */
export interface Author {
  readonly actor: Actor
  readonly cause: Cause
}

/** What a change did. `unchanged`: everything was so already. */
export interface Applied {
  readonly change: ChangeType | "unchanged"
  readonly eventId: GraphEventId | null
  readonly entity:
    | { readonly kind: "object"; readonly object: GraphObject }
    | { readonly kind: "relationship"; readonly relationship: Relationship }
}

export class Gateway extends Context.Service<
  Gateway,
  {
    /** Makes a change in the caller's transaction, or refuses it with nothing written. */
    readonly apply: (
      change: Change,
      author: Author
    ) => Effect.Effect<Applied, ChangeRefused, ProjectTransaction>
  }
>()("@tropism/server/graph/Gateway") {
  static readonly layer = Layer.effect(
    Gateway,
    Effect.gen(function* () {
      const sql = yield* SqlClient.SqlClient
      const ids = yield* Ids
      const authorities = yield* Authorities
      const wakeUps = yield* WakeUps

      /** The agent's wall: capabilities as they are now, and no unapproved write in suggest mode. */
      const permit = Effect.fnUntraced(function* (
        change: Change,
        types: ReadonlyArray<string>,
        { actor, cause }: Author
      ) {
        if (actor.actorType !== "agent") return
        const authority = actor.actorId === null ? undefined : yield* authorities.of(actor.actorId as AgentId)
        if (!authority?.isActive)
          return yield* refused("agentDisabled", "The agent is disabled or deleted and may change nothing")
        const denial = denies(authority.capabilities, change.type, types)
        if (denial !== undefined) return yield* refused("notPermitted", denial)
        const isApproved = cause.taskId !== null && cause.approvedBy !== null
        if (authority.executionMode === "suggest" && !isApproved) {
          return yield* refused(
            "notPermitted",
            "The agent may only suggest changes, and no person approved this one"
          )
        }
      })

      const valid = (properties: Properties) => {
        const fault = findPropertiesFault(properties)
        return fault ? Effect.fail(refused("invalid", fault.message, fault.pointer)) : Effect.void
      }

      /** The columns in which every version and event says who made it and why. */
      const authorship = ({ actor, cause }: Author) => ({
        actorType: actor.actorType,
        actorId: actor.actorId,
        approvedBy: cause.approvedBy,
        runId: cause.runId,
        toolCallId: cause.toolCallId,
        taskId: cause.taskId
      })

      const nextEventId = Effect.map(ids.next, (id) => id as GraphEventId)

      /** Writes one version row and its event; the caller has written the entity's own row. */
      const record = Effect.fnUntraced(function* (
        entity: Applied["entity"],
        type: ChangeType,
        changed: ReadonlyArray<string>,
        author: Author
      ) {
        const { projectId } = yield* ProjectTransaction
        const eventId = yield* nextEventId
        const by = authorship(author)
        const state = snapshotOf(entity)
        const event = sql`
          insert into kb.graph_events (id, project_id, entity_type, object_type, entity_id, version, type, changed_properties, snapshot,
            actor_type, actor_id, approved_by, run_id, tool_call_id, task_id, root_event_id, depth)
          values (${eventId}, ${projectId}, ${entity.kind === "object" ? "graphObject" : "relationship"}, ${state.type}, ${state.id},
            ${state.version}, ${type}, ${changed}, ${JSON.stringify(state)}::text::jsonb,
            ${by.actorType}, ${by.actorId}, ${by.approvedBy}, ${by.runId}, ${by.toolCallId}, ${by.taskId},
            ${author.cause.rootEventId ?? eventId}, ${author.cause.depth})`
        if (entity.kind === "relationship") yield* event
        else {
          yield* sql`
            with event as (${event})
            insert into kb.graph_object_versions (object_id, version, project_id, type, properties, actor_type, actor_id, approved_by,
              run_id, tool_call_id, task_id, event_id)
            values (${state.id}, ${state.version}, ${projectId}, ${type}, ${JSON.stringify(state.properties)}::text::jsonb,
              ${by.actorType}, ${by.actorId}, ${by.approvedBy}, ${by.runId}, ${by.toolCallId}, ${by.taskId}, ${eventId})`
        }
        yield* sql.afterCommit(wakeUps.signal("events"))
        return eventId
      })

      const lockObject = Effect.fnUntraced(function* (id: ObjectId) {
        const { projectId } = yield* ProjectTransaction
        const [row] = yield* sql<ObjectRow>`
          select * from kb.graph_objects where id = ${id} and project_id = ${projectId} and deleted_at is null for update`
        return row ?? (yield* refused("notFound", `There is no object ${id}`, "/objectId"))
      })

      const createObject = Effect.fnUntraced(function* (change: CreateObject, author: Author) {
        yield* permit(change, [change.objectType], author)
        yield* valid(change.data)
        if (change.key !== null) {
          const fault = findFault(change.key)
          if (fault) return yield* refused("invalid", fault.message, "/key")
        }
        const { projectId } = yield* ProjectTransaction
        const id = yield* ids.next
        const [row] = yield* sql<ObjectRow>`
          insert into kb.graph_objects (id, project_id, type, key, properties, version, actor_type, actor_id)
          values (${id}, ${projectId}, ${change.objectType}, ${change.key}, ${JSON.stringify(change.data)}::text::jsonb, 1,
            ${author.actor.actorType}, ${author.actor.actorId})
          on conflict (project_id, type, key) where deleted_at is null do nothing
          returning *`
        if (!row)
          return yield* refused(
            "keyTaken",
            `There is already a ${change.objectType} with the key ${change.key}`,
            "/key"
          )
        return yield* recorded(
          { kind: "object", object: toObject(row) },
          "created",
          Object.keys(change.data).toSorted(),
          author
        )
      })

      const updateObject = Effect.fnUntraced(function* (change: UpdateObject, author: Author) {
        const row = yield* lockObject(change.objectId)
        yield* permit(change, [row.type], author)
        yield* expectVersion(change.expectedVersion, row.version)
        const fault = findFault(change.data, "/properties")
        if (fault) return yield* refused("invalid", fault.message, fault.pointer)
        const after = mergePatch(row.properties, change.data)
        if (!isJsonObject(after))
          return yield* refused("invalid", "Properties must be a JSON object", "/properties")
        yield* valid(after)
        if (canonicalJson(row.properties) === canonicalJson(after)) {
          return {
            change: "unchanged",
            eventId: null,
            entity: { kind: "object", object: toObject(row) }
          } satisfies Applied
        }
        const updated = yield* Effect.flatMap(
          sql<ObjectRow>`
          update kb.graph_objects set properties = ${JSON.stringify(after)}::text::jsonb, version = version + 1, updated_at = now(),
            actor_type = ${author.actor.actorType}, actor_id = ${author.actor.actorId}
          where id = ${row.id} returning *`,
          onlyRow
        )
        return yield* recorded(
          { kind: "object", object: toObject(updated) },
          "updated",
          changedProperties(row.properties, after),
          author
        )
      })

      /** Deletes an object and the relationships that end at it, each with its own event. */
      const deleteObject = Effect.fnUntraced(function* (change: DeleteObject, author: Author) {
        const row = yield* lockObject(change.objectId)
        yield* permit(change, [row.type], author)
        yield* expectVersion(change.expectedVersion, row.version)
        const dangling = yield* sql<RelationshipRow>`
          update kb.graph_relationships set deleted_at = now(), updated_at = now(), version = version + 1,
            actor_type = ${author.actor.actorType}, actor_id = ${author.actor.actorId}
          where (from_id = ${row.id} or to_id = ${row.id}) and deleted_at is null returning *`
        for (const relationship of dangling) {
          yield* record(
            { kind: "relationship", relationship: toRelationship(relationship) },
            "deleted",
            [],
            author
          )
        }
        const deleted = yield* Effect.flatMap(
          sql<ObjectRow>`
          update kb.graph_objects set deleted_at = now(), updated_at = now(), version = version + 1,
            actor_type = ${author.actor.actorType}, actor_id = ${author.actor.actorId}
          where id = ${row.id} returning *`,
          onlyRow
        )
        return yield* recorded({ kind: "object", object: toObject(deleted) }, "deleted", [], author)
      })

      const createRelationship = Effect.fnUntraced(function* (change: CreateRelationship, author: Author) {
        const { projectId } = yield* ProjectTransaction
        const { fromId, toId, type } = change.relationship
        const ends = yield* sql<{ id: ObjectId; type: string }>`
          select id, type from kb.graph_objects where id in (${fromId}, ${toId}) and project_id = ${projectId} and deleted_at is null
          order by id for share`
        for (const [id, pointer] of [
          [fromId, "/fromId"],
          [toId, "/toId"]
        ] as const) {
          if (!ends.some((end) => end.id === id))
            return yield* refused("notFound", `There is no object ${id}`, pointer)
        }
        yield* permit(
          change,
          ends.map((end) => end.type),
          author
        )
        yield* valid(change.data)
        const [row] = yield* sql<RelationshipRow>`
          insert into kb.graph_relationships (id, project_id, type, from_id, to_id, properties, version, actor_type, actor_id)
          values (${yield* ids.next}, ${projectId}, ${type}, ${fromId}, ${toId}, ${JSON.stringify(change.data)}::text::jsonb, 1,
            ${author.actor.actorType}, ${author.actor.actorId})
          on conflict (project_id, type, from_id, to_id) where deleted_at is null do nothing
          returning *`
        if (!row)
          return yield* refused("relationshipExists", `There is already a ${type} from ${fromId} to ${toId}`)
        return yield* recorded(
          { kind: "relationship", relationship: toRelationship(row) },
          "created",
          Object.keys(change.data).toSorted(),
          author
        )
      })

      const deleteRelationship = Effect.fnUntraced(function* (change: DeleteRelationship, author: Author) {
        const { projectId } = yield* ProjectTransaction
        const id: RelationshipId = change.relationshipId
        const [found] = yield* sql<{ fromId: ObjectId; toId: ObjectId }>`
          select from_id, to_id from kb.graph_relationships where id = ${id} and project_id = ${projectId} and deleted_at is null for update`
        if (!found) return yield* refused("notFound", `There is no relationship ${id}`, "/relationshipId")
        const ends = yield* sql<{
          type: string
        }>`select type from kb.graph_objects where id in (${found.fromId}, ${found.toId})`
        yield* permit(
          change,
          ends.map((end) => end.type),
          author
        )
        const row = yield* Effect.flatMap(
          sql<RelationshipRow>`
          update kb.graph_relationships set deleted_at = now(), updated_at = now(), version = version + 1,
            actor_type = ${author.actor.actorType}, actor_id = ${author.actor.actorId}
          where id = ${id} returning *`,
          onlyRow
        )
        return yield* recorded(
          { kind: "relationship", relationship: toRelationship(row) },
          "deleted",
          [],
          author
        )
      })

      const recorded = (
        entity: Applied["entity"],
        change: ChangeType,
        changed: ReadonlyArray<string>,
        author: Author
      ) =>
        Effect.map(record(entity, change, changed, author), (eventId): Applied => ({
          change,
          eventId,
          entity
        }))

      const change = (wanted: Change, author: Author) => {
        switch (wanted.type) {
          case "create":
            return createObject(wanted, author)
          case "update":
            return updateObject(wanted, author)
          case "delete":
            return deleteObject(wanted, author)
          case "createRelationship":
            return createRelationship(wanted, author)
          case "deleteRelationship":
            return deleteRelationship(wanted, author)
        }
      }

      const apply = Effect.fn("Gateway.apply")(function* (wanted: Change, author: Author) {
        const applied = yield* orDie(
          change(wanted, author) as Effect.Effect<Applied, ChangeRefused, ProjectTransaction>
        )
        yield* CrashPoint.hit("graph.beforeCommit")
        return applied
      })

      return Gateway.of({ apply })
    })
  )
}

const expectVersion = (expected: number | undefined, current: number) =>
  expected === undefined || expected === current
    ? Effect.void
    : Effect.fail(
        refused(
          "version",
          `The object is at version ${current}, not ${expected}: read it again`,
          "/expectedVersion"
        )
      )

/** The state that an event carries. */
const snapshotOf = (entity: Applied["entity"]) =>
  entity.kind === "object"
    ? {
        id: entity.object.id as string,
        type: entity.object.type,
        key: entity.object.key,
        properties: entity.object.properties,
        version: entity.object.version
      }
    : {
        id: entity.relationship.id as string,
        type: entity.relationship.type,
        fromId: entity.relationship.fromId,
        toId: entity.relationship.toId,
        properties: entity.relationship.properties,
        version: entity.relationship.version
      }
