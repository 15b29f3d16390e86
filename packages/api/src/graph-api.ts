/**
 * The graph's doors: objects, relationships and their events.
 */
import { CreateObject } from "@tropism/domain/change"
import {
  GraphEvent,
  GraphObject,
  ObjectKey,
  ObjectType,
  ObjectVersion,
  Relationship
} from "@tropism/domain/graph"
import { ObjectId, ProjectId, RelationshipId } from "@tropism/domain/ids"
import { Properties } from "@tropism/domain/json"
import { Schema } from "effect"
import { HttpApiEndpoint, HttpApiGroup, HttpApiSchema } from "effect/http-api"
import { Authorization, RequestJudgement } from "./authorization.ts"
import { Page, PageQuery } from "./page.ts"
import { Conflict, Forbidden, InvalidInput, NotFound } from "./problems.ts"

/** Accepts null as absent. */
const opt = <S extends Schema.Top>(schema: S) => Schema.optional(Schema.NullOr(schema))

export const ObjectInput = Schema.Struct({
  type: CreateObject.fields.objectType,
  key: opt(ObjectKey),
  properties: opt(Properties)
}).annotate({ identifier: "ObjectInput" })
export type ObjectInput = typeof ObjectInput.Type

/** `properties` is a JSON merge patch: null removes a property. */
export const ObjectPatch = Schema.Struct({
  properties: Properties,
  expectedVersion: opt(Schema.Int)
}).annotate({ identifier: "ObjectPatch" })
export type ObjectPatch = typeof ObjectPatch.Type

export const RelationshipInput = Schema.Struct({
  type: ObjectType,
  fromId: ObjectId,
  toId: ObjectId,
  properties: opt(Properties)
}).annotate({ identifier: "RelationshipInput" })
export type RelationshipInput = typeof RelationshipInput.Type

const project = { projectId: ProjectId }
const object = { projectId: ProjectId, objectId: ObjectId }
const relationship = { projectId: ProjectId, relationshipId: RelationshipId }

export class ObjectsApi extends HttpApiGroup.make("objects")
  .add(
    HttpApiEndpoint.get("list", "/objects", {
      params: project,
      query: { ...PageQuery, type: Schema.optional(Schema.String), key: Schema.optional(Schema.String) },
      success: Page(GraphObject),
      error: [NotFound, InvalidInput]
    }),
    HttpApiEndpoint.post("create", "/objects", {
      params: project,
      payload: ObjectInput,
      success: GraphObject.pipe(HttpApiSchema.status(201)),
      error: [NotFound, Forbidden, Conflict, InvalidInput]
    }),
    HttpApiEndpoint.get("get", "/objects/:objectId", {
      params: object,
      success: GraphObject,
      error: NotFound
    }),
    HttpApiEndpoint.patch("update", "/objects/:objectId", {
      params: object,
      payload: ObjectPatch,
      success: GraphObject,
      error: [NotFound, Forbidden, Conflict, InvalidInput]
    }),
    HttpApiEndpoint.delete("delete", "/objects/:objectId", {
      params: object,
      success: HttpApiSchema.NoContent,
      error: [NotFound, Forbidden, Conflict]
    }),
    HttpApiEndpoint.get("history", "/objects/:objectId/history", {
      params: object,
      query: PageQuery,
      success: Page(ObjectVersion),
      error: [NotFound, InvalidInput]
    })
  )
  .prefix("/api/projects/:projectId")
  .middleware(RequestJudgement)
  .middleware(Authorization) {}

export class RelationshipsApi extends HttpApiGroup.make("relationships")
  .add(
    HttpApiEndpoint.get("list", "/relationships", {
      params: project,
      query: { ...PageQuery, type: Schema.optional(Schema.String), objectId: Schema.optional(ObjectId) },
      success: Page(Relationship),
      error: [NotFound, InvalidInput]
    }),
    HttpApiEndpoint.post("create", "/relationships", {
      params: project,
      payload: RelationshipInput,
      success: Relationship.pipe(HttpApiSchema.status(201)),
      error: [NotFound, Forbidden, Conflict, InvalidInput]
    }),
    HttpApiEndpoint.get("get", "/relationships/:relationshipId", {
      params: relationship,
      success: Relationship,
      error: NotFound
    }),
    HttpApiEndpoint.delete("delete", "/relationships/:relationshipId", {
      params: relationship,
      success: HttpApiSchema.NoContent,
      error: [NotFound, Forbidden, Conflict]
    })
  )
  .prefix("/api/projects/:projectId")
  .middleware(RequestJudgement)
  .middleware(Authorization) {}

export class FeedApi extends HttpApiGroup.make("feed")
  .add(
    /** A JSON page in feed order; with `Accept: text/event-stream` the live feed, ids being positions. */
    HttpApiEndpoint.get("events", "/events", {
      params: project,
      query: {
        ...PageQuery,
        after: Schema.optional(
          Schema.FiniteFromString.check(Schema.isInt(), Schema.isGreaterThanOrEqualTo(0))
        )
      },
      success: Page(GraphEvent),
      error: [NotFound, InvalidInput]
    })
  )
  .prefix("/api/projects/:projectId")
  .middleware(RequestJudgement)
  .middleware(Authorization) {}
