/**
 * The kinds of graph events for MCP clients: their filters and payloads.
 *
 * Pure. **Invariant**: an occurrence has the id of its event, so a client that receives it twice, by any way, can deduplicate it.
 */
import { type ProtocolError, ProtocolErrorCode } from "@modelcontextprotocol/server"
import { ChangeType, EntityType, type GraphEvent, isPurged, ObjectType } from "@tropism/domain/graph"
import { ObjectId, RelationshipId, type ProjectId } from "@tropism/domain/ids"
import { isJsonObject, type Properties } from "@tropism/domain/json"
import { matches, PropertyFilters } from "@tropism/domain/property-filter"
import { Schema, Effect, Clock, Context, Layer } from "effect"
import type { ProjectTransaction } from "../database/database.ts"
import { FeedSearch, Outbox } from "../outbox/outbox.ts"
import { jsonSchemaOf } from "../tools/arguments.ts"
import { badParams, fault, readParams } from "./server.ts"

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

/** The filter of a subscription; all of its fields must match. */
export interface EventFilter {
  readonly type?: string | null | undefined
  readonly where?: PropertyFilters | null | undefined
  readonly changedProperties?: ReadonlyArray<string> | null | undefined
  readonly objectId?: string | null | undefined
  readonly relationshipId?: string | null | undefined
  readonly fromId?: string | null | undefined
  readonly toId?: string | null | undefined
}

/** An entry of the event catalog. */
interface EventType {
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

/** All kinds of events, by name. */
export const eventTypes: ReadonlyMap<string, EventType> = new Map(
  EntityType.literals
    .flatMap((entityType) => ChangeType.literals.map((change) => typeOf(entityType, change)))
    .map((type) => [type.name, type])
)

/** The payload, the same for all kinds; fields that a kind does not have are absent. */
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

/** The catalog as `events/list` returns it. */
export const listedEvents = [...eventTypes.values()].map(({ description, filter, name, title }) => ({
  name,
  title,
  description,
  delivery: ["poll", "push", "webhook"],
  inputSchema: { ...jsonSchemaOf(filter), additionalProperties: false },
  payloadSchema: jsonSchemaOf(Payload)
}))

/** One event as a client receives it. */
interface Occurrence {
  readonly eventId: string
  readonly name: string
  readonly timestamp: string
  readonly data: typeof Payload.Type
}

/** Whether an event of the right kind, type and id matches the rest of a filter. */
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

/** Whether the filter is unset or equal. */
const isOneOf = (wanted: string | null | undefined, found: Schema.Json | undefined): boolean =>
  wanted === null || wanted === undefined || wanted === found

const propertiesOf = ({ snapshot }: Pick<GraphEvent, "snapshot">): Properties => {
  const properties = isJsonObject(snapshot) ? snapshot["properties"] : undefined
  return isJsonObject(properties) ? properties : {}
}

/** The occurrence of an event. */
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

// Parameters of the Events extension's methods.
//
// An event name and its arguments identify a subscription, by whichever way it is delivered. The schema in the catalog validates the
// arguments.

const nullable = <S extends Schema.Constraint>(schema: S) => Schema.optional(Schema.NullOr(schema))

const WholeMs = Schema.Int.check(Schema.isGreaterThanOrEqualTo(0))
const Arguments = Schema.Record(Schema.String, Schema.Unknown)

const listening = { name: Schema.String, arguments: nullable(Arguments) }
const beginning = { cursor: nullable(Schema.String), maxAgeMs: nullable(WholeMs) }

export const PollParams = Schema.Struct({
  ...listening,
  ...beginning,
  maxEvents: nullable(Schema.Int.check(Schema.isGreaterThanOrEqualTo(1)))
})
export const StreamParams = Schema.Struct({ ...listening, ...beginning })
export const SubscribeParams = Schema.Struct({
  ...listening,
  ...beginning,
  /** Null requests no end; absent leaves it to the server. */
  ttlMs: nullable(Schema.Int.check(Schema.isGreaterThanOrEqualTo(1))),
  delivery: Schema.Struct({
    mode: Schema.optional(Schema.String),
    url: Schema.String,
    secret: Schema.String
  })
})
export const UnsubscribeParams = Schema.Struct({
  ...listening,
  delivery: Schema.Struct({ mode: Schema.optional(Schema.String), url: Schema.String })
})

/** The extension's own errors. */
export const eventFault = {
  notFound: (kind: "event" | "subscription", message: string) => numbered(-32_011, message, { kind }),
  exhausted: (limit: string, max: number, message: string) => numbered(-32_013, message, { limit, max }),
  unsupported: (feature: string, value: string, message: string) =>
    numbered(-32_014, message, { feature, value }),
  callback: (reason: string, message: string) => numbered(-32_015, message, { reason })
} as const

// The codes belong to the extension; the SDK does not list them.
const numbered = (code: number, message: string, detail: object): ProtocolError =>
  fault(code as ProtocolErrorCode, message, detail)

/** The event and filter of a request. */
export const readListening = Effect.fnUntraced(function* (asked: {
  readonly name: string
  readonly arguments?: Readonly<Record<string, unknown>> | null | undefined
}): Effect.fn.Return<Listening, ProtocolError> {
  const type = eventTypes.get(asked.name)
  if (type === undefined)
    return yield* Effect.fail(
      eventFault.notFound(
        "event",
        `There is no event of this name: ${[...eventTypes.keys()].join(", ")} are known`
      )
    )
  return { type, filter: yield* readParams(type.filter, asked.arguments ?? {}) }
})

/** The start position of a request, from a cursor of this project. */
export const readBeginning = (
  projectId: ProjectId,
  {
    cursor,
    maxAgeMs
  }: { readonly cursor?: string | null | undefined; readonly maxAgeMs?: number | null | undefined }
): Effect.Effect<Beginning, ProtocolError> => {
  if (cursor === null || cursor === undefined) return Effect.succeed({ after: null, maxAgeMs: null })
  const after = positionOf(projectId, cursor)
  return after === undefined
    ? Effect.fail(
        badParams("Invalid params: /cursor: This is no cursor of this project: send one that it answered")
      )
    : Effect.succeed({ after, maxAgeMs: maxAgeMs ?? null })
}

/** The maximum number of events of a poll. */
export const pollSize = (wanted: number | null | undefined): number =>
  Math.min(wanted ?? eventLimits.pollEvents, eventLimits.pollMaxEvents)

// Cursors: positions in a project's feed, opaque to clients.
//
// A cursor names its project, so one of another project is refused and cannot silently mean a position here.

/** The cursor after a position. */
export const cursorAt = (projectId: ProjectId, position: number): string =>
  Buffer.from(`1.${projectId}.${position}`).toString("base64url")

/** The position of a cursor; undefined where it is not one of this project. */
export const positionOf = (projectId: ProjectId, cursor: string): number | undefined => {
  const text = Buffer.from(cursor, "base64url").toString("utf8")
  const { position, project } =
    /^1\.(?<project>[0-9a-f-]{36})\.(?<position>\d{1,15})$/.exec(text)?.groups ?? {}
  return project === projectId && cursorAt(projectId, Number(position)) === cursor
    ? Number(position)
    : undefined
}

// Reads matching events after a position of the feed.
//
// Polls, streams and webhooks all read here, so all deliver the same. A read covers a bounded range and returns the position for the next
// one, even when nothing matched.

/** An event and its filter. */
export interface Listening {
  readonly type: EventType
  readonly filter: EventFilter
}

/** Where to begin: after the position, but with nothing older than this. */
export interface Beginning {
  /** Null is the present. */
  readonly after: number | null
  readonly maxAgeMs: number | null
}

/** The result of a read. */
export interface Seen {
  readonly occurrences: ReadonlyArray<Occurrence & { readonly position: number }>
  /** Everything up to this position was read. */
  readonly position: number
  readonly hasMore: boolean
}

type InProject<A> = Effect.Effect<A, never, ProjectTransaction>

export class EventReading extends Context.Service<
  EventReading,
  {
    /** The start position, and whether requested events before it are missing. */
    readonly begin: (
      beginning: Beginning
    ) => InProject<{ readonly position: number; readonly truncated: boolean }>
    /** The next occurrences after a position. */
    readonly look: (listening: Listening, after: number, limit: number) => InProject<Seen>
  }
>()("@tropism/server/mcp/EventReading") {
  static readonly layer = Layer.effect(
    EventReading,
    Effect.gen(function* () {
      const outbox = yield* Outbox
      const search = yield* FeedSearch

      const begin = Effect.fn("EventReading.begin")(function* ({ after, maxAgeMs }: Beginning) {
        const last = yield* outbox.lastPosition
        if (after === null) return { position: last, truncated: false }
        // A position beyond the end is from before the database was restored to an older state; the events between are unknown.
        if (after > last) return { position: last, truncated: true }
        if (maxAgeMs === null || after === last) return { position: after, truncated: false }
        const floor = new Date((yield* Clock.currentTimeMillis) - maxAgeMs).toISOString()
        const position = yield* search.placeBefore(floor, { after, upTo: last })
        return { position, truncated: position > after }
      })

      const look = Effect.fn("EventReading.look")(function* (
        { filter, type }: Listening,
        after: number,
        limit: number
      ) {
        const last = yield* outbox.lastPosition
        if (after >= last) return { occurrences: [], position: last, hasMore: false }
        const upTo = Math.min(after + eventLimits.lookPlaces, last)
        const sought = {
          entityType: type.entityType,
          change: type.change,
          type: filter.type ?? null,
          entityId: filter.objectId ?? filter.relationshipId ?? null
        }
        const events = yield* search.find(sought, { after, upTo }, limit)
        const occurrences: Array<Occurrence & { readonly position: number }> = []
        let [position, chars] = [after, 0]
        for (const event of events) {
          if (chars > eventLimits.pollMaxChars) return { occurrences, position, hasMore: true }
          position = event.position ?? position
          if (!isMeant(event, filter)) continue
          const occurrence = occurrenceOf(type, event)
          occurrences.push({ ...occurrence, position })
          chars += JSON.stringify(occurrence).length
        }
        const end = events.length < limit ? upTo : position
        return { occurrences, position: end, hasMore: end < last }
      })

      return EventReading.of({ begin, look })
    })
  )
}

// Limits of events over MCP; each unit is in its name.

export const eventLimits = {
  /** Maximum and default number of events of a poll. */
  pollMaxEvents: 100,
  pollEvents: 50,
  /** Feed positions that one read covers, whether or not they match. */
  lookPlaces: 2_000,
  /** The poll interval for a client that has seen everything. */
  nextPollMs: 5_000,
  /** One occurrence's properties, as JSON text: with the rest it fits a delivery of 256 KiB at three bytes per character. */
  occurrencePropertiesMaxChars: 80_000,
  /** One answer to a poll, as JSON text, plus at most one event. */
  pollMaxChars: 2_000_000,
  /** Open streams of one server in all, and of one user in one project. */
  streams: 500,
  streamsPerUser: 20,
  /** A stream ends after this amount and its client resumes from its cursor: what it has received is unknown. */
  streamMaxChars: 8_000_000,
  /** Subscriptions of one user in one project. */
  subscriptionsPerUser: 100,
  urlMaxChars: 2_000,
  /** Bytes of a signing secret in Standard Webhooks. */
  secretMinBytes: 24,
  secretMaxBytes: 64,
  /** Lifetime of a subscription without a refresh: the default, the minimum and the maximum. */
  subscriptionMs: 86_400_000,
  subscriptionMinMs: 60_000,
  subscriptionMaxMs: 2_592_000_000,
  /** Deliveries carry a signature of the previous secret, too, for this long after a change. */
  secretGraceMs: 600_000,
  /** Subscriptions sealed again in one transaction. */
  sealedTogether: 100,
  /** One delivery, from connect to answer. */
  deliveryTimeoutMs: 10_000,
  answerMaxBytes: 4_096,
  /** Confirmations per host in a minute. */
  challengesPerHostAndMinute: 30,
  /** Hosts with such a counter. */
  challengedHosts: 1_000,
  /** Concurrent deliveries of one server; those reserved for projects without any; and those of one project. */
  deliverers: 16,
  spareDeliverers: 4,
  deliverersPerProject: 8,
  /** Events and time of one turn of a subscription; a post in progress finishes first. */
  turnEvents: 100,
  turnMs: 10_000,
  /** The claim of a server that is silent for this long passes to another. */
  claimMs: 30_000,
  /** The first retry delay, which doubles with each failure; after this many in a row the subscription is suspended. */
  backOffBaseMs: 1_000,
  backOffMaxMs: 3_600_000,
  maxAttempts: 16
} as const
