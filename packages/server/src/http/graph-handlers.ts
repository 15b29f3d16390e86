/**
 * The graph's doors: what a person or program does to objects and relationships.
 *
 * Flow: **http** → graph → outbox → dispatch → run → tool → task
 *
 * A handler turns a request into a `Change` of a user and hands it to the
 * gateway; it writes nothing itself. Nothing here waits for an agent.
 */
import { Api } from "@tropism/api/api"
import type { Principal, Role } from "@tropism/api/authorization"
import { direct } from "@tropism/domain/actor"
import type { Change } from "@tropism/domain/change"
import type { ProjectId } from "@tropism/domain/ids"
import { Effect } from "effect"
import { HttpApiBuilder } from "effect/http-api"
import { CrashPoint } from "../crash-point.ts"
import { type Author, Gateway } from "../graph/gateway.ts"
import { Objects } from "../graph/objects.ts"
import { inProject, reading } from "./access.ts"
import { pageById, pageByNumber } from "./paging.ts"
import { changeProblem, invalid, orNotFound } from "./refusals.ts"

/** A change that the principal makes directly. */
const authorOf = (principal: Principal): Author => ({
  actor: { actorType: "user", actorId: principal.userId },
  cause: direct
})

/** Makes a user's change in a transaction of its own. */
const change = Effect.fn("http.change")(function* (
  projectId: ProjectId,
  wanted: Change,
  role: Role = "editor"
) {
  const gateway = yield* Gateway
  const applied = yield* inProject(projectId, role, (principal) =>
    Effect.mapError(gateway.apply(wanted, authorOf(principal)), changeProblem)
  )
  yield* CrashPoint.hit("graph.afterCommit")
  return applied.entity
})

const objectOf = (entity: Effect.Success<ReturnType<typeof change>>) =>
  entity.kind === "object"
    ? Effect.succeed(entity.object)
    : Effect.die(new Error("A change of an object answered a relationship"))

const relationshipOf = (entity: Effect.Success<ReturnType<typeof change>>) =>
  entity.kind === "relationship"
    ? Effect.succeed(entity.relationship)
    : Effect.die(new Error("A change of a relationship answered an object"))

export const objectsHandlers = HttpApiBuilder.group(Api, "objects", (handlers) =>
  handlers.handleAll({
    list: Effect.fn("http.objects.list")(function* ({ params, query }) {
      const objects = yield* Objects
      const { type, key } = query
      return yield* reading(
        params.projectId,
        pageById(query, (before, limit) => objects.list({ type, key }, before, limit))
      )
    }),
    create: Effect.fn("http.objects.create")(function* ({ params, payload }) {
      const { type, key, properties } = payload
      const wanted: Change = { type: "create", objectType: type, key: key ?? null, data: properties ?? {} }
      return yield* Effect.flatMap(change(params.projectId, wanted), objectOf)
    }),
    get: Effect.fn("http.objects.get")(function* ({ params }) {
      const objects = yield* Objects
      return yield* orNotFound("object")(reading(params.projectId, objects.get(params.objectId)))
    }),
    update: Effect.fn("http.objects.update")(function* ({ params, payload }) {
      const { properties, expectedVersion } = payload
      const wanted: Change = {
        type: "update",
        objectId: params.objectId,
        data: properties,
        ...(typeof expectedVersion === "number" ? { expectedVersion } : {})
      }
      return yield* Effect.flatMap(change(params.projectId, wanted), objectOf)
    }),
    delete: Effect.fn("http.objects.delete")(function* ({ params }) {
      yield* change(params.projectId, { type: "delete", objectId: params.objectId }).pipe(
        Effect.catchTag("InvalidInput", Effect.die)
      )
    }),
    history: Effect.fn("http.objects.history")(function* ({ params, query }) {
      const objects = yield* Objects
      const read = (before: number | undefined, limit: number) =>
        orNotFound("object")(objects.history(params.objectId, before, limit))
      return yield* reading(
        params.projectId,
        pageByNumber(query, (version) => version.version, read)
      )
    })
  })
)

export const relationshipsHandlers = HttpApiBuilder.group(Api, "relationships", (handlers) =>
  handlers.handleAll({
    list: Effect.fn("http.relationships.list")(function* ({ params, query }) {
      const objects = yield* Objects
      const { type, objectId } = query
      return yield* reading(
        params.projectId,
        pageById(query, (before, limit) => objects.listRelationships({ type, objectId }, before, limit))
      )
    }),
    create: Effect.fn("http.relationships.create")(function* ({ params, payload }) {
      const { type, fromId, toId, properties } = payload
      if (fromId === toId) return yield* invalid("/toId", "An object is not related to itself")
      return yield* Effect.flatMap(
        change(params.projectId, {
          type: "createRelationship",
          relationship: { type, fromId, toId },
          data: properties ?? {}
        }),
        relationshipOf
      )
    }),
    get: Effect.fn("http.relationships.get")(function* ({ params }) {
      const objects = yield* Objects
      return yield* orNotFound("relationship")(
        reading(params.projectId, objects.getRelationship(params.relationshipId))
      )
    }),
    delete: Effect.fn("http.relationships.delete")(function* ({ params }) {
      yield* change(params.projectId, {
        type: "deleteRelationship",
        relationshipId: params.relationshipId
      }).pipe(Effect.catchTag("InvalidInput", Effect.die))
    })
  })
)
