/**
 * The graph's doors: objects, relationships and their events.
 */
import { CreateObject } from "@tropism/domain/change"
import {
  Direction,
  GraphEvent,
  GraphObject,
  neighborBounds,
  Neighborhood,
  ObjectKey,
  ObjectType,
  ObjectVersion,
  Purge,
  Relationship,
  RelationshipVersion
} from "@tropism/domain/graph"
import { ObjectId, ProjectId, RelationshipId } from "@tropism/domain/ids"
import { Properties } from "@tropism/domain/json"
import { PropertyFilters } from "@tropism/domain/property-filter"
import { Provenance } from "@tropism/domain/provenance"
import { Schema } from "effect"
import { HttpApiEndpoint, HttpApiGroup, HttpApiSchema, OpenApi } from "effect/http-api"
import { Authorization, RequestJudgement } from "./authorization.ts"
import { expectedVersion, ifMatch } from "./expected-version.ts"
import { Instant } from "./instant.ts"
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

const patchFields = { properties: Properties, ...expectedVersion }

/** `properties` is a JSON merge patch: null removes a property. */
export const ObjectPatch = Schema.Struct(patchFields).annotate({ identifier: "ObjectPatch" })
export type ObjectPatch = typeof ObjectPatch.Type

export const RelationshipInput = Schema.Struct({
  type: ObjectType,
  fromId: ObjectId,
  toId: ObjectId,
  properties: opt(Properties)
}).annotate({ identifier: "RelationshipInput" })
export type RelationshipInput = typeof RelationshipInput.Type

/** `properties` is a JSON merge patch; a relationship's type and ends never change. */
export const RelationshipPatch = Schema.Struct(patchFields).annotate({ identifier: "RelationshipPatch" })
export type RelationshipPatch = typeof RelationshipPatch.Type

/** Reads as it was at an instant. */
const asOf = { asOf: Schema.optional(Instant) }

/** Reads as one version left it, or as it was at an instant. */
const moment = {
  version: Schema.optional(Schema.FiniteFromString.check(Schema.isInt(), Schema.isGreaterThanOrEqualTo(1))),
  ...asOf
}

const deletion = {
  purge: Schema.optional(
    Schema.Literals(["true", "false"]).annotate({
      description: "true removes all that the graph keeps of it, for good; for admins"
    })
  )
}

const deletionText =
  "Deletes it as a last version; its history stays and it can be restored. With `purge=true` (for admins) its versions, its relationships and what its events said are removed for good. A purge does not reach into what agents did: what they read of it or wrote about it stays in the contexts and events of their runs, in tool calls and in tasks. `If-Match` names the version that the caller knows; at another version nothing happens and the answer is 409."

const project = { projectId: ProjectId }
const object = { projectId: ProjectId, objectId: ObjectId }
const relationship = { projectId: ProjectId, relationshipId: RelationshipId }

export class ObjectsApi extends HttpApiGroup.make("objects")
  .add(
    HttpApiEndpoint.get("list", "/objects", {
      params: project,
      query: {
        ...PageQuery,
        ...asOf,
        type: Schema.optional(Schema.String),
        key: Schema.optional(Schema.String),
        /** Words, or beginnings of words, that all occur in key, type or properties. */
        query: Schema.optional(Schema.String.check(Schema.isMaxLength(500))),
        /** A JSON list of conditions on properties that all must hold. */
        where: Schema.optional(Schema.fromJsonString(PropertyFilters)),
        /** `relevance` where words are searched, else `createdAt`; the newest come first. */
        sort: Schema.optional(Schema.Literals(["createdAt", "updatedAt", "relevance"]))
      },
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
      query: moment,
      success: GraphObject,
      error: [NotFound, InvalidInput]
    }),
    HttpApiEndpoint.patch("update", "/objects/:objectId", {
      params: object,
      headers: ifMatch,
      payload: ObjectPatch,
      success: GraphObject,
      error: [NotFound, Forbidden, Conflict, InvalidInput]
    }),
    HttpApiEndpoint.delete("delete", "/objects/:objectId", {
      params: object,
      headers: ifMatch,
      query: deletion,
      success: HttpApiSchema.NoContent,
      error: [NotFound, Forbidden, Conflict, InvalidInput]
    }).annotate(OpenApi.Description, deletionText),
    /** Brings a deleted object back as a new version, with the relationships that were deleted with it. */
    HttpApiEndpoint.post("restore", "/objects/:objectId/restore", {
      params: object,
      success: GraphObject,
      error: [NotFound, Forbidden, Conflict]
    }),
    HttpApiEndpoint.get("history", "/objects/:objectId/history", {
      params: object,
      query: PageQuery,
      success: Page(ObjectVersion),
      error: [NotFound, InvalidInput]
    }),
    /** What the object is related to, nearest first. */
    HttpApiEndpoint.get("neighbors", "/objects/:objectId/neighbors", {
      params: object,
      query: {
        ...asOf,
        depth: Schema.optional(
          Schema.FiniteFromString.check(
            Schema.isInt(),
            Schema.isBetween({ minimum: 1, maximum: neighborBounds.maxDepth })
          )
        ),
        direction: Schema.optional(Direction),
        /** Follows relationships of this type only. */
        type: Schema.optional(Schema.String),
        limit: PageQuery.limit
      },
      success: Neighborhood,
      error: [NotFound, InvalidInput]
    }),
    /** Why each property has its value: event, actor, run, tool call, approver, back to the root event. */
    HttpApiEndpoint.get("provenance", "/objects/:objectId/provenance", {
      params: object,
      query: { property: Schema.optional(Schema.String) },
      success: Provenance,
      error: [NotFound, InvalidInput]
    }),
    /** What was removed for good, by whom and when. */
    HttpApiEndpoint.get("purges", "/purges", {
      params: project,
      query: PageQuery,
      success: Page(Purge),
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
      query: {
        ...PageQuery,
        ...asOf,
        type: Schema.optional(Schema.String),
        fromId: Schema.optional(ObjectId),
        toId: Schema.optional(ObjectId),
        /** Either end. */
        objectId: Schema.optional(ObjectId)
      },
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
      query: moment,
      success: Relationship,
      error: [NotFound, InvalidInput]
    }),
    HttpApiEndpoint.patch("update", "/relationships/:relationshipId", {
      params: relationship,
      headers: ifMatch,
      payload: RelationshipPatch,
      success: Relationship,
      error: [NotFound, Forbidden, Conflict, InvalidInput]
    }),
    HttpApiEndpoint.delete("delete", "/relationships/:relationshipId", {
      params: relationship,
      headers: ifMatch,
      query: deletion,
      success: HttpApiSchema.NoContent,
      error: [NotFound, Forbidden, Conflict, InvalidInput]
    }).annotate(OpenApi.Description, deletionText),
    /** Brings a deleted relationship back as a new version. */
    HttpApiEndpoint.post("restore", "/relationships/:relationshipId/restore", {
      params: relationship,
      success: Relationship,
      error: [NotFound, Forbidden, Conflict]
    }),
    HttpApiEndpoint.get("history", "/relationships/:relationshipId/history", {
      params: relationship,
      query: PageQuery,
      success: Page(RelationshipVersion),
      error: [NotFound, InvalidInput]
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
