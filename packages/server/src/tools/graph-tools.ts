/**
 * Definitions of the `graph` server's tools: names, descriptions and argument schemas.
 *
 * Every write takes reasoning and confidence, and may request to be suggested only. No schema has a field for the
 * caller.
 */
import { Direction, neighborBounds, ObjectKey, ObjectType } from "@tropism/domain/graph"
import { ObjectId, RelationshipId } from "@tropism/domain/ids"
import { Properties } from "@tropism/domain/json"
import { PropertyFilters } from "@tropism/domain/property-filter"
import { Schema } from "effect"
import { toolLimits } from "../limits.ts"

/** Accepts null as absent: many models send null for what they leave out. */
const opt = <S extends Schema.Top>(schema: S) => Schema.optional(Schema.NullOr(schema))

/** The agent's reason for a change. */
export const Reasoning = Schema.String.check(Schema.isMaxLength(toolLimits.reasoningMaxChars)).annotate({
  description: "Why this change is right, for the person who reviews it"
})

const intent = {
  reasoning: opt(Reasoning),
  confidence: opt(
    Schema.Finite.check(Schema.isBetween({ minimum: 0, maximum: 1 })).annotate({
      description: "How sure you are, 0 to 1"
    })
  ),
  suggest: opt(Schema.Boolean.annotate({ description: "True to ask a person instead of changing the graph" }))
}

export const SearchObjects = Schema.Struct({
  query: opt(
    Schema.String.check(Schema.isMaxLength(500)).annotate({
      description:
        "Words, or beginnings of words, that all occur in the object's key, type or properties; best matches come first"
    })
  ),
  type: opt(ObjectType),
  where: opt(
    PropertyFilters.annotate({
      description:
        'Conditions on properties that all must hold, e.g. [{"property": "license", "op": "eq", "value": "MIT"}]'
    })
  ),
  limit: opt(Schema.Int.check(Schema.isGreaterThanOrEqualTo(1)))
})
export const GetObject = Schema.Struct({ objectId: ObjectId })
export const Neighbors = Schema.Struct({
  objectId: ObjectId,
  depth: opt(Schema.Int.check(Schema.isBetween({ minimum: 1, maximum: neighborBounds.maxDepth }))),
  direction: opt(
    Direction.annotate({ description: "Follow relationships that begin here (out), end here (in), or both" })
  ),
  type: opt(ObjectType.annotate({ description: "Follow only relationships of this type" }))
})
export const CreateObjectArguments = Schema.Struct({
  type: ObjectType,
  key: opt(ObjectKey),
  properties: Properties,
  ...intent
})
export const UpdateObjectArguments = Schema.Struct({
  objectId: ObjectId,
  properties: Properties.annotate({
    description: "A JSON merge patch: the properties to set; null removes one"
  }),
  ...intent
})
export const DeleteObjectArguments = Schema.Struct({ objectId: ObjectId, ...intent })
export const CreateRelationshipArguments = Schema.Struct({
  type: ObjectType,
  fromId: ObjectId,
  toId: ObjectId,
  properties: opt(Properties),
  ...intent
})
export const UpdateRelationshipArguments = Schema.Struct({
  relationshipId: RelationshipId,
  properties: Properties.annotate({
    description: "A JSON merge patch: the properties to set; null removes one"
  }),
  ...intent
})
export const DeleteRelationshipArguments = Schema.Struct({ relationshipId: RelationshipId, ...intent })

/** Every tool of the server, by name. */
export const graphTools = {
  search_objects: {
    description: "Finds objects of the graph by words, type and properties.",
    arguments: SearchObjects
  },
  get_object: { description: "Reads one object with all its properties.", arguments: GetObject },
  neighbors: {
    description: "Reads what an object is related to, to a depth of relationships.",
    arguments: Neighbors
  },
  create_object: { description: "Creates an object.", arguments: CreateObjectArguments },
  update_object: {
    description: "Changes properties of an object; those you do not name stay.",
    arguments: UpdateObjectArguments
  },
  delete_object: {
    description: "Deletes an object and its relationships.",
    arguments: DeleteObjectArguments
  },
  create_relationship: {
    description: "Relates one object to another.",
    arguments: CreateRelationshipArguments
  },
  update_relationship: {
    description: "Changes properties of a relationship; those you do not name stay.",
    arguments: UpdateRelationshipArguments
  },
  delete_relationship: { description: "Deletes a relationship.", arguments: DeleteRelationshipArguments }
} as const
