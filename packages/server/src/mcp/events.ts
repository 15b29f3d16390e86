/**
 * The kinds of graph events that MCP clients can subscribe to, and what each says.
 *
 * Pure: what a client may ask for, whether an event is meant, and the occurrence
 * that it becomes. An occurrence has the id of its event, so whoever hears of it
 * twice knows it again, by whichever way it came.
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
interface Occurrence {
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

// What clients send to the methods of the Events extension.
//
// One event name and its arguments are one subscription, by whichever way it is
// delivered. Arguments are read by the schema that the catalog shows.

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
  /** Null asks for no end; absent leaves it to the server. */
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

// The numbers are the extension's and stand in no list of the SDK's.
const numbered = (code: number, message: string, detail: object): ProtocolError =>
  fault(code as ProtocolErrorCode, message, detail)

/** What somebody listens for, by its name and arguments. */
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

/** Where somebody begins, by a cursor of this project. */
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

/** How many events a poll is answered with at most. */
export const pollSize = (wanted: number | null | undefined): number =>
  Math.min(wanted ?? eventLimits.pollEvents, eventLimits.pollMaxEvents)

// Cursors of the event source: places in a project's feed, in a form that says nothing to a client.
//
// A cursor names its project, so one that was given out for another is refused
// and does not quietly mean some place here.

/** The cursor of what comes behind a place. */
export const cursorAt = (projectId: ProjectId, position: number): string =>
  Buffer.from(`1.${projectId}.${position}`).toString("base64url")

/** The place of a cursor; undefined where it is none of this project. */
export const positionOf = (projectId: ProjectId, cursor: string): number | undefined => {
  const text = Buffer.from(cursor, "base64url").toString("utf8")
  const { position, project } =
    /^1\.(?<project>[0-9a-f-]{36})\.(?<position>\d{1,15})$/.exec(text)?.groups ?? {}
  return project === projectId && cursorAt(projectId, Number(position)) === cursor
    ? Number(position)
    : undefined
}

// Reads what happened behind a place of the feed, for whoever asks for one kind of it.
//
// Polls, streams and webhooks all read here, so they all tell the same. A look
// goes through a bounded stretch; behind it stands where the next one begins,
// also when nothing in it was meant.

/** What somebody listens for. */
export interface Listening {
  readonly type: EventType
  readonly filter: EventFilter
}

/** Where to begin: behind the place, but with nothing older than this. */
export interface Beginning {
  /** Null is now. */
  readonly after: number | null
  readonly maxAgeMs: number | null
}

/** What a look found. */
export interface Seen {
  readonly occurrences: ReadonlyArray<Occurrence & { readonly position: number }>
  /** Everything up to this place was looked at. */
  readonly position: number
  readonly hasMore: boolean
}

type InProject<A> = Effect.Effect<A, never, ProjectTransaction>

export class EventReading extends Context.Service<
  EventReading,
  {
    /** The place behind which somebody begins, and whether that leaves something out which was asked for. */
    readonly begin: (
      beginning: Beginning
    ) => InProject<{ readonly position: number; readonly truncated: boolean }>
    /** The next occurrences behind a place. */
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
        // A place beyond the end was given out before the database was set back: nobody knows what lies between.
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

// Every bound of events over MCP, with its unit in its name.
//

export const eventLimits = {
  /** Events that one poll answers at most, and where nobody says. */
  pollMaxEvents: 100,
  pollEvents: 50,
  /** Places of the feed that one look goes through, whatever is meant by it. */
  lookPlaces: 2_000,
  /** What a client that has seen everything waits before it asks again. */
  nextPollMs: 5_000,
  /** Of one occurrence's properties, in JSON text: with all else it fits a delivery of 256 KiB, each character of up to three bytes. */
  occurrencePropertiesMaxChars: 80_000,
  /** Of one answer to a poll, in JSON text, and one event more. */
  pollMaxChars: 2_000_000,
  /** Streams that are open at one server, of everybody and of one user in one project. */
  streams: 500,
  streamsPerUser: 20,
  /** A stream that has sent so much is ended, and its client goes on from its cursor: nobody knows how much of it was taken. */
  streamMaxChars: 8_000_000,
  /** Subscriptions of one user in one project. */
  subscriptionsPerUser: 100,
  urlMaxChars: 2_000,
  /** Bytes of a signing secret, as Standard Webhooks says. */
  secretMinBytes: 24,
  secretMaxBytes: 64,
  /** A subscription ends that nobody refreshes: where nobody says when, at the soonest and at the latest. */
  subscriptionMs: 86_400_000,
  subscriptionMinMs: 60_000,
  subscriptionMaxMs: 2_592_000_000,
  /** Deliveries are signed with the secret of before, too, for this long after another was given. */
  secretGraceMs: 600_000,
  /** Subscriptions whose secrets are sealed anew in one transaction. */
  sealedTogether: 100,
  /** Of one delivery, from the connection to the answer. */
  deliveryTimeoutMs: 10_000,
  answerMaxBytes: 4_096,
  /** Addresses of one host that are asked in a minute whether they want deliveries. */
  challengesPerHostAndMinute: 30,
  /** Hosts that are remembered for it. */
  challengedHosts: 1_000,
  /** Subscriptions that one program delivers to at once, of those kept free for projects that have none of theirs under way, and of one project. */
  deliverers: 16,
  spareDeliverers: 4,
  deliverersPerProject: 8,
  /** Events of one subscription, and time, before the next have their turn; what is posted by then ends first. */
  turnEvents: 100,
  turnMs: 10_000,
  /** A program that is silent for so long has lost what it delivers to another. */
  claimMs: 30_000,
  /** After a failure the next try waits, twice as long each time; after so many in a row deliveries are suspended. */
  backOffBaseMs: 1_000,
  backOffMaxMs: 3_600_000,
  maxAttempts: 16
} as const
