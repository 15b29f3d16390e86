/**
 * What someone wants done to the graph, as a value.
 *
 * The same value is applied directly, stored in a suggestion, bound by its
 * digest and applied at approval, so what a person approves is what happens.
 */
import { Schema } from "effect"
import { ObjectKey, ObjectType } from "./graph.ts"
import { ObjectId, RelationshipId } from "./ids.ts"
import { canonicalJson, Properties } from "./json.ts"
import { Untrusted } from "./untrusted.ts"

/** Which of the properties written are untrusted; absent, none is. */
const marks = { untrusted: Schema.optionalKey(Untrusted) }

export const CreateObject = Schema.Struct({
  type: Schema.Literal("create"),
  objectType: ObjectType,
  key: Schema.NullOr(ObjectKey),
  data: Properties,
  ...marks
})

/** `data` is a JSON merge patch of the object's properties. */
export const UpdateObject = Schema.Struct({
  type: Schema.Literal("update"),
  objectId: ObjectId,
  data: Properties,
  ...marks,
  expectedVersion: Schema.optionalKey(Schema.Int)
})

export const DeleteObject = Schema.Struct({
  type: Schema.Literal("delete"),
  objectId: ObjectId,
  expectedVersion: Schema.optionalKey(Schema.Int)
})

export const CreateRelationship = Schema.Struct({
  type: Schema.Literal("createRelationship"),
  relationship: Schema.Struct({ fromId: ObjectId, toId: ObjectId, type: ObjectType }),
  data: Properties,
  ...marks
})

/** `data` is a JSON merge patch of the relationship's properties; its type and ends never change. */
export const UpdateRelationship = Schema.Struct({
  type: Schema.Literal("updateRelationship"),
  relationshipId: RelationshipId,
  data: Properties,
  ...marks,
  expectedVersion: Schema.optionalKey(Schema.Int)
})

export const DeleteRelationship = Schema.Struct({
  type: Schema.Literal("deleteRelationship"),
  relationshipId: RelationshipId,
  expectedVersion: Schema.optionalKey(Schema.Int)
})

export const Change = Schema.Union([
  CreateObject,
  UpdateObject,
  DeleteObject,
  CreateRelationship,
  UpdateRelationship,
  DeleteRelationship
])
export type Change = typeof Change.Type
export type CreateObject = typeof CreateObject.Type
export type UpdateObject = typeof UpdateObject.Type
export type DeleteObject = typeof DeleteObject.Type
export type CreateRelationship = typeof CreateRelationship.Type
export type UpdateRelationship = typeof UpdateRelationship.Type
export type DeleteRelationship = typeof DeleteRelationship.Type

/** The text whose hash is a suggestion's digest. */
export const digestText = (change: Change): string => canonicalJson(change)
