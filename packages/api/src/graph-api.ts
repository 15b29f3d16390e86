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
import { GraphEventId, ObjectId, ProjectId, RelationshipId } from "@tropism/domain/ids"
import { Properties } from "@tropism/domain/json"
import { filterBounds, PropertyFilters } from "@tropism/domain/property-filter"
import { Provenance } from "@tropism/domain/provenance"
import { UntrustedWords } from "@tropism/domain/untrusted"
import { Schema } from "effect"
import { HttpApiEndpoint, HttpApiGroup, HttpApiSchema, OpenApi } from "effect/http-api"
import { alsoStreamed } from "./also-streamed.ts"
import { alsoUnchanged } from "./also-unchanged.ts"
import { Authorization, RequestJudgement } from "./authorization.ts"
import { expectedVersion, ifMatch } from "./expected-version.ts"
import { Instant } from "./instant.ts"
import { After, Page, PageQuery, told } from "./page.ts"
import { Conflict, Forbidden, InvalidInput, NotFound, PreconditionFailed } from "./problems.ts"

/** Accepts null as absent. */
const opt = <S extends Schema.Top>(schema: S) => Schema.optional(Schema.NullOr(schema))

export const ObjectInput = Schema.Struct({
  type: CreateObject.fields.objectType,
  key: opt(ObjectKey),
  properties: opt(Properties),
  untrusted: opt(UntrustedWords)
}).annotate({ identifier: "ObjectInput" })
export type ObjectInput = typeof ObjectInput.Type

const patchFields = { properties: Properties, untrusted: opt(UntrustedWords), ...expectedVersion }

/** `properties` is a JSON merge patch: null removes a property. */
export const ObjectPatch = Schema.Struct(patchFields).annotate({ identifier: "ObjectPatch" })
export type ObjectPatch = typeof ObjectPatch.Type

export const RelationshipInput = Schema.Struct({
  type: ObjectType,
  fromId: ObjectId,
  toId: ObjectId,
  properties: opt(Properties),
  untrusted: opt(UntrustedWords)
}).annotate({ identifier: "RelationshipInput" })
export type RelationshipInput = typeof RelationshipInput.Type

/** `properties` is a JSON merge patch; a relationship's type and ends never change. */
export const RelationshipPatch = Schema.Struct(patchFields).annotate({ identifier: "RelationshipPatch" })
export type RelationshipPatch = typeof RelationshipPatch.Type

/** Reads as it was at an instant. */
const asOf = {
  asOf: told(
    Instant,
    "Reads as it was at this instant, to the millisecond, e.g. 2026-11-20T23:30:00Z; the + of an offset is written %2B"
  )
}

/** Reads as one version left it, or as it was at an instant. */
const moment = {
  version: told(
    Schema.FiniteFromString.check(Schema.isInt(), Schema.isGreaterThanOrEqualTo(1)),
    "Reads as this version left it, from 1; not together with asOf"
  ),
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
  "Deletes it as a last version; its history stays and it can be restored. With `purge=true` (for admins) its versions, its relationships and what its events said are removed for good. A purge does not reach into what agents did: what they read of it or wrote about it stays in the contexts and events of their runs, in tool calls and in tasks. `If-Match` names the version that the caller knows; at another version nothing happens and the answer is 412."

const whereText = `A JSON list of at most ${filterBounds.maxConditions} conditions that all must hold, e.g. [{"property":"license","op":"eq","value":"MIT"}]. A property is a name, or a JSON pointer of at most ${filterBounds.maxSteps} steps (/author/name); a pointer walks through objects and never into lists. eq, ne, in (a list of at most ${filterBounds.maxChoices}), gt, gte, lt, lte (numbers, or texts by code point), contains (a text in a text, an element in a list), startsWith, exists (true or false).`

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
        type: told(Schema.String, "Only objects of this type, e.g. Package"),
        key: told(Schema.String, "Only objects with exactly this key"),
        query: told(
          Schema.String.check(Schema.isMaxLength(500)),
          "Words, or beginnings of words, that all occur in key, type or properties; at most 500 characters"
        ),
        where: told(Schema.fromJsonString(PropertyFilters), whereText),
        sort: told(
          Schema.Literals(["createdAt", "updatedAt", "relevance", "name", "type"]),
          "What comes first: the newest, the last changed, what fits query best, or by the alphabet: name (the key, else the property name, title or label) or type, then name; these two not together with asOf. relevance where query is given, else createdAt"
        )
      },
      success: Page(GraphObject),
      error: [NotFound, InvalidInput]
    }).annotate(
      OpenApi.Description,
      "Objects, found by type, key, words and conditions on their properties; now or as they were at an instant."
    ),
    HttpApiEndpoint.post("create", "/objects", {
      params: project,
      payload: ObjectInput,
      success: GraphObject.pipe(HttpApiSchema.status(201)),
      error: [NotFound, Forbidden, Conflict, InvalidInput]
    }).annotate(
      OpenApi.Description,
      "Makes an object. `key` is a name that finds it again, unique for its type; where it is taken the answer is 409."
    ),
    HttpApiEndpoint.get("get", "/objects/:objectId", {
      params: object,
      query: moment,
      success: GraphObject,
      error: [NotFound, InvalidInput]
    })
      .annotateMerge(alsoUnchanged)
      .annotate(
        OpenApi.Description,
        "One object, now, as a version left it, or as it was at an instant. Its ETag is its version."
      ),
    HttpApiEndpoint.patch("update", "/objects/:objectId", {
      params: object,
      headers: ifMatch,
      payload: ObjectPatch,
      success: GraphObject,
      error: [NotFound, Forbidden, Conflict, InvalidInput, PreconditionFailed]
    }).annotate(
      OpenApi.Description,
      "Changes properties by a JSON merge patch: null removes one, what is not named stays. `If-Match` or `expectedVersion` names the version that the caller knows; at another the answer is 412, or 409 where the body names it."
    ),
    HttpApiEndpoint.delete("delete", "/objects/:objectId", {
      params: object,
      headers: ifMatch,
      query: deletion,
      success: HttpApiSchema.NoContent,
      error: [NotFound, Forbidden, Conflict, InvalidInput, PreconditionFailed]
    }).annotate(OpenApi.Description, deletionText),
    HttpApiEndpoint.post("restore", "/objects/:objectId/restore", {
      params: object,
      success: GraphObject,
      error: [NotFound, Forbidden, Conflict]
    }).annotate(
      OpenApi.Description,
      "Brings a deleted object back as a new version, with the relationships that were deleted with it."
    ),
    HttpApiEndpoint.get("history", "/objects/:objectId/history", {
      params: object,
      query: PageQuery,
      success: Page(ObjectVersion),
      error: [NotFound, InvalidInput]
    }).annotate(
      OpenApi.Description,
      "Every version, newest first, with who made it and why; also of a deleted object."
    ),
    HttpApiEndpoint.get("neighbors", "/objects/:objectId/neighbors", {
      params: object,
      query: {
        ...asOf,
        depth: told(
          Schema.FiniteFromString.check(
            Schema.isInt(),
            Schema.isBetween({ minimum: 1, maximum: neighborBounds.maxDepth })
          ),
          `How many relationships to go, from 1 to ${neighborBounds.maxDepth}; 1 by itself`
        ),
        direction: told(
          Direction,
          "Follows relationships that begin at the object (out), end at it (in), or both, which is the default"
        ),
        type: told(Schema.String, "Follows relationships of this type only"),
        limit: PageQuery.limit
      },
      success: Neighborhood,
      error: [NotFound, InvalidInput]
    }).annotate(OpenApi.Description, "What the object is related to, nearest first, itself left out."),
    HttpApiEndpoint.get("provenance", "/objects/:objectId/provenance", {
      params: object,
      query: { property: told(Schema.String, "Only this property, also where it was removed") },
      success: Provenance,
      error: [NotFound, InvalidInput]
    }).annotate(
      OpenApi.Description,
      "Why each property has its value: event, actor, run, tool call, approver, back to the root event. Of a deleted object the last values, with who deleted it."
    ),
    HttpApiEndpoint.get("purges", "/purges", {
      params: project,
      query: PageQuery,
      success: Page(Purge),
      error: [NotFound, InvalidInput]
    }).annotate(OpenApi.Description, "What was removed for good, by whom and when, newest first.")
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
        type: told(Schema.String, "Only relationships of this type, e.g. DEPENDS_ON"),
        fromId: told(ObjectId, "Only those that begin at this object"),
        toId: told(ObjectId, "Only those that end at this object"),
        objectId: told(ObjectId, "Only those that begin or end at this object")
      },
      success: Page(Relationship),
      error: [NotFound, InvalidInput]
    }).annotate(
      OpenApi.Description,
      "Relationships, found by type and ends; now or as they were at an instant. Newest first."
    ),
    HttpApiEndpoint.post("create", "/relationships", {
      params: project,
      payload: RelationshipInput,
      success: Relationship.pipe(HttpApiSchema.status(201)),
      error: [NotFound, Forbidden, Conflict, InvalidInput]
    }).annotate(
      OpenApi.Description,
      "Relates two objects. There is one relationship of a type from one object to another; where it is there already the answer is 409."
    ),
    HttpApiEndpoint.get("get", "/relationships/:relationshipId", {
      params: relationship,
      query: moment,
      success: Relationship,
      error: [NotFound, InvalidInput]
    })
      .annotateMerge(alsoUnchanged)
      .annotate(
        OpenApi.Description,
        "One relationship, now, as a version left it, or as it was at an instant. Its ETag is its version."
      ),
    HttpApiEndpoint.patch("update", "/relationships/:relationshipId", {
      params: relationship,
      headers: ifMatch,
      payload: RelationshipPatch,
      success: Relationship,
      error: [NotFound, Forbidden, Conflict, InvalidInput, PreconditionFailed]
    }).annotate(
      OpenApi.Description,
      "Changes properties by a JSON merge patch; type and ends never change. `If-Match` or `expectedVersion` names the version that the caller knows; at another the answer is 412, or 409 where the body names it."
    ),
    HttpApiEndpoint.delete("delete", "/relationships/:relationshipId", {
      params: relationship,
      headers: ifMatch,
      query: deletion,
      success: HttpApiSchema.NoContent,
      error: [NotFound, Forbidden, Conflict, InvalidInput, PreconditionFailed]
    }).annotate(OpenApi.Description, deletionText),
    HttpApiEndpoint.post("restore", "/relationships/:relationshipId/restore", {
      params: relationship,
      success: Relationship,
      error: [NotFound, Forbidden, Conflict]
    }).annotate(
      OpenApi.Description,
      "Brings a deleted relationship back as a new version; both its objects must be there."
    ),
    HttpApiEndpoint.get("history", "/relationships/:relationshipId/history", {
      params: relationship,
      query: PageQuery,
      success: Page(RelationshipVersion),
      error: [NotFound, InvalidInput]
    }).annotate(
      OpenApi.Description,
      "Every version, newest first, with who made it and why; also of a deleted relationship."
    )
  )
  .prefix("/api/projects/:projectId")
  .middleware(RequestJudgement)
  .middleware(Authorization) {}

export class FeedApi extends HttpApiGroup.make("feed")
  .add(
    HttpApiEndpoint.get("events", "/events", {
      params: project,
      query: {
        ...PageQuery,
        ...After,
        order: told(
          Schema.Literals(["asc", "desc"]),
          "The oldest first, or with desc the newest; of a page only"
        )
      },
      success: Page(GraphEvent),
      error: [NotFound, InvalidInput]
    })
      .annotate(
        OpenApi.Description,
        "A JSON page of what happened to the graph, in feed order or the newest first; with `Accept: text/event-stream` the live feed, whose ids are positions."
      )
      .annotateMerge(alsoStreamed),
    HttpApiEndpoint.get("get", "/events/:eventId", {
      params: { projectId: ProjectId, eventId: GraphEventId },
      success: GraphEvent,
      error: NotFound
    }).annotate(
      OpenApi.Description,
      "One event: what was committed, by whom and in which chain. Of what was purged its content is gone, the event stays."
    )
  )
  .prefix("/api/projects/:projectId")
  .middleware(RequestJudgement)
  .middleware(Authorization) {}
