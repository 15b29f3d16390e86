/**
 * The kinds of graph events that MCP clients can subscribe to, and what each says.
 *
 * Flow: **mcp** → graph → outbox → dispatch → run → tool → task
 *
 * Pure: what a client may ask for, whether an event is meant, and the occurrence
 * that it becomes. An occurrence has the id of its event, so whoever hears of it
 * twice knows it again, by whichever way it came.
 */
import { ChangeType, EntityType, type GraphEvent, isPurged, ObjectType } from "@tropism/domain/graph"
import { ObjectId, RelationshipId } from "@tropism/domain/ids"
import { isJsonObject, type Properties } from "@tropism/domain/json"
import { matches, PropertyFilters } from "@tropism/domain/property-filter"
import { Schema } from "effect"
import { jsonSchemaOf } from "../tool/read-arguments.ts"
import { eventLimits } from "./event-limits.ts"

const ChangedProperties = Schema.Array(Schema.String.check(Schema.isBetweenLength(1, 500))).check(
  Schema.isBetweenLength(1, 100)
)

const common = {
  type: Schema.optional(Schema.NullOr(ObjectType)),
  where: Schema.optional(Schema.NullOr(PropertyFilters))
}
const changed = { changedProperties: Schema.optional(Schema.NullOr(ChangedProperties)) }
const ofObjects = { ...common, objectId: Schema.optional(Schema.NullOr(ObjectId)) }
const ofRelationships = {
  ...common,
  relationshipId: Schema.optional(Schema.NullOr(RelationshipId)),
  fromId: Schema.optional(Schema.NullOr(ObjectId)),
  toId: Schema.optional(Schema.NullOr(ObjectId))
}

/** What a subscription to one kind of event may narrow it to: all of it must hold. */
export interface EventFilter {
  readonly type?: string | null | undefined
  readonly where?: PropertyFilters | null | undefined
  readonly changedProperties?: ReadonlyArray<string> | null | undefined
  readonly objectId?: string | null | undefined
  readonly relationshipId?: string | null | undefined
  readonly fromId?: string | null | undefined
  readonly toId?: string | null | undefined
}

/** A kind of event as the catalog has it. */
export interface EventType {
  readonly name: string
  readonly title: string
  readonly description: string
  readonly entityType: EntityType
  readonly change: ChangeType
  readonly filter: Schema.ConstraintDecoder<EventFilter>
}

const words: Readonly<Record<ChangeType, string>> = {
  created: "came into being",
  updated: "was changed",
  deleted: "was deleted; the data are those of its last state"
}

const typeOf = (entityType: EntityType, change: ChangeType): EventType => {
  const noun = entityType === "graphObject" ? "object" : "relationship"
  const fields = entityType === "graphObject" ? ofObjects : ofRelationships
  return {
    name: `${noun}.${change}`,
    title: `${noun === "object" ? "Object" : "Relationship"} ${change}`,
    description: `A${noun === "object" ? "n object" : " relationship"} of the knowledge graph ${words[change]}`,
    entityType,
    change,
    filter: change === "updated" ? Schema.Struct({ ...fields, ...changed }) : Schema.Struct(fields)
  }
}

/** Every kind of event, by its name. */
export const eventTypes: ReadonlyMap<string, EventType> = new Map(
  EntityType.literals
    .flatMap((entityType) => ChangeType.literals.map((change) => typeOf(entityType, change)))
    .map((type) => [type.name, type])
)

/** What an occurrence tells, the same for all kinds; absent is what the kind does not have. */
const Payload = Schema.Struct({
  objectId: Schema.optionalKey(Schema.String),
  relationshipId: Schema.optionalKey(Schema.String),
  fromId: Schema.optionalKey(Schema.String),
  toId: Schema.optionalKey(Schema.String),
  type: Schema.String,
  key: Schema.optionalKey(Schema.NullOr(Schema.String)),
  version: Schema.Int,
  properties: Schema.NullOr(Schema.Record(Schema.String, Schema.Json)).annotate({
    description: "The state after the change; null where it is too large to be sent, or was purged since"
  }),
  changedProperties: Schema.Array(Schema.String),
  untrusted: Schema.optionalKey(Schema.Array(Schema.String)).annotate({
    description: "The properties whose values come from sources that nobody vouches for"
  }),
  actor: Schema.Struct({ type: Schema.String, id: Schema.NullOr(Schema.String) }),
  approvedBy: Schema.NullOr(Schema.String),
  runId: Schema.NullOr(Schema.String),
  rootEventId: Schema.String,
  depth: Schema.Int
})

/** The catalog as `events/list` tells it. */
export const listedEvents = [...eventTypes.values()].map(({ description, filter, name, title }) => ({
  name,
  title,
  description,
  delivery: ["poll", "push", "webhook"],
  inputSchema: { ...jsonSchemaOf(filter), additionalProperties: false },
  payloadSchema: jsonSchemaOf(Payload)
}))

/** One thing that happened, as a client is told of it. */
export interface Occurrence {
  readonly eventId: string
  readonly name: string
  readonly timestamp: string
  readonly data: typeof Payload.Type
}

/** Whether an event of the right kind, type and id is meant by the rest of a filter. */
export const isMeant = (
  event: Pick<GraphEvent, "changedProperties" | "snapshot">,
  { changedProperties, fromId, toId, where }: EventFilter
): boolean => {
  const { fromId: from, toId: to } = isJsonObject(event.snapshot) ? event.snapshot : {}
  if (!isOneOf(fromId, from) || !isOneOf(toId, to)) return false
  if (changedProperties && !changedProperties.some((name) => event.changedProperties.includes(name)))
    return false
  return !where || (!isPurged(event) && matches(where, propertiesOf(event)))
}

/** Whether nothing was said, or just this. */
const isOneOf = (wanted: string | null | undefined, found: Schema.Json | undefined): boolean =>
  wanted === null || wanted === undefined || wanted === found

const propertiesOf = ({ snapshot }: Pick<GraphEvent, "snapshot">): Properties => {
  const properties = isJsonObject(snapshot) ? snapshot["properties"] : undefined
  return isJsonObject(properties) ? properties : {}
}

/** What a client is told of an event. */
export const occurrenceOf = ({ name }: EventType, event: GraphEvent): Occurrence => {
  const { fromId, key, toId, untrusted } = isJsonObject(event.snapshot) ? event.snapshot : {}
  const properties = propertiesOf(event)
  const isTold =
    !isPurged(event) && JSON.stringify(properties).length <= eventLimits.occurrencePropertiesMaxChars
  return {
    eventId: event.id,
    name,
    timestamp: event.createdAt,
    data: {
      ...(event.entityType === "graphObject"
        ? { objectId: event.entityId, key: typeof key === "string" ? key : null }
        : {
            relationshipId: event.entityId,
            ...(typeof fromId === "string" && typeof toId === "string" ? { fromId, toId } : {})
          }),
      type: event.objectType,
      version: event.version,
      properties: isTold ? properties : null,
      changedProperties: event.changedProperties,
      ...(Array.isArray(untrusted) ? { untrusted: untrusted.map(String) } : {}),
      actor: { type: event.actorType, id: event.actorId },
      approvedBy: event.approvedBy,
      runId: event.runId,
      rootEventId: event.rootEventId,
      depth: event.depth
    }
  }
}
