/**
 * The Events extension (SEP-3415): the project's graph events by poll, stream or webhook.
 *
 * Everyone who may read the project may listen. All three ways read the same feed with the same cursors, so a client may switch between
 * them and miss nothing.
 */
import type { Server, ServerCapabilities, ProtocolError, ServerContext } from "@modelcontextprotocol/server"
import type { ProjectId } from "@tropism/domain/ids"
import { Effect, Schema, Clock, Context, Layer, Option } from "effect"
import { CrashPoint } from "../crash-point.ts"
import { Database } from "../database/database.ts"
import { sees } from "../http/access.ts"
import { streamLimits } from "../http/limits.ts"
import { Closing } from "../http/listener.ts"
import { Tokens } from "../http/tokens.ts"
import { makeFairSlots } from "../outbox/fair-slots.ts"
import { drive, share, untilNotified, Notifier, nextNotification } from "../outbox/notifier.ts"
import { retryDuringOutages } from "../outbox/outages.ts"
import { KillSwitches } from "../runs/kill-switches.ts"
import type { McpCaller, McpCapability, RunForServer } from "./capability.ts"
import { type CallbackFailed, Callbacks } from "./event-callbacks.ts"
import {
  EventSubscribing,
  type ClaimedSubscription,
  EventSubscriptions,
  type Progress
} from "./event-subscriptions.ts"
import {
  cursorAt,
  eventLimits,
  PollParams,
  pollSize,
  readBeginning,
  readListening,
  StreamParams,
  EventReading,
  listedEvents,
  type Listening,
  type Seen,
  eventTypes,
  eventFault,
  type Beginning
} from "./events.ts"
import { anyParams, readParams, whoIs, gone, makeStreamSlots } from "./server.ts"

export const eventsExtension = "io.modelcontextprotocol/events"

/** Clients from before the final extension look for it beside the other capabilities. */
const capabilities: ServerCapabilities & { readonly events: object } = {
  extensions: { [eventsExtension]: {} },
  events: {}
}

const ListParams = Schema.Struct({ cursor: Schema.optional(Schema.NullOr(Schema.String)) })

/** The capability module; its streams end when the server stops. */
export const eventsPart: Effect.Effect<
  McpCapability,
  never,
  Closing | Database | EventReading | EventStreams | EventSubscribing
> = Effect.gen(function* () {
  const database = yield* Database
  const reading = yield* EventReading
  const streams = yield* EventStreams
  const subscribing = yield* EventSubscribing
  const closing = yield* Closing

  const poll = Effect.fn("mcp.events.poll")(function* (
    { projectId }: McpCaller,
    params: Readonly<Record<string, unknown>>
  ) {
    const asked = yield* readParams(PollParams, params)
    const listening = yield* readListening(asked)
    const beginning = yield* readBeginning(projectId, asked)
    return yield* database.inProject(
      projectId,
      Effect.gen(function* () {
        const { position, truncated } = yield* reading.begin(beginning)
        const seen = yield* reading.look(listening, position, pollSize(asked.maxEvents))
        return {
          events: seen.occurrences.map(({ position: _place, ...occurrence }) => occurrence),
          cursor: cursorAt(projectId, seen.position),
          truncated,
          hasMore: seen.hasMore,
          nextPollMs: eventLimits.nextPollMs
        }
      })
    )
  })

  const extend =
    (caller: McpCaller) =>
    (server: Server, run: RunForServer): void => {
      server.setRequestHandler("events/list", anyParams, (params) =>
        run(Effect.as(readParams(ListParams, params), { events: listedEvents }))
      )
      server.setRequestHandler("events/poll", anyParams, (params) => run(poll(caller, params)))
      server.setRequestHandler("events/subscribe", anyParams, (params) =>
        run(Effect.map(subscribing.subscribe(caller, params), (kept) => ({ ...kept })))
      )
      server.setRequestHandler("events/unsubscribe", anyParams, (params) =>
        run(Effect.as(subscribing.unsubscribe(caller, params), {}))
      )
      server.setRequestHandler("events/stream", anyParams, (params, context) =>
        run(
          Effect.gen(function* () {
            const asked = yield* readParams(StreamParams, params)
            const listening = yield* readListening(asked)
            const beginning = yield* readBeginning(caller.projectId, asked)
            yield* Effect.raceFirst(streams.stream(caller, listening, beginning, context), closing.begun)
            return {}
          })
        )
      )
    }

  return {
    name: "events extension",
    offerTo: (caller) => ({
      capabilities,
      extend: extend(caller)
    })
  }
})

// Delivers events to subscribers' addresses: in order, at least once, by one server at a time.
//
// A delivery is posted outside any transaction and recorded when it was accepted. A crash in between posts it again under the same id, so
// the receiver can deduplicate it. A failed delivery is retried and blocks later ones; the cursor in each delivery is the position up to
// which all were accepted. A slow address delays no other: a turn is bounded, and other projects have reserved slots.

export class EventDeliverer extends Context.Service<
  EventDeliverer,
  {
    /** Delivers endlessly. */
    readonly run: Effect.Effect<never>
  }
>()("@tropism/server/mcp/EventDeliverer") {
  static readonly layer = Layer.effect(
    EventDeliverer,
    Effect.gen(function* () {
      const database = yield* Database
      const subscriptions = yield* EventSubscriptions
      const reading = yield* EventReading
      const callbacks = yield* Callbacks
      const tokens = yield* Tokens
      const notifier = yield* Notifier
      const switches = yield* KillSwitches

      /** Posts the events of one read in order, until the turn is over; returns whether to continue. */
      const deliver = Effect.fnUntraced(function* (
        projectId: ProjectId,
        claimed: ClaimedSubscription,
        { occurrences, position }: Seen,
        endMs: number
      ) {
        const note = (progress: Progress) =>
          retryDuringOutages(database.inProject(projectId, subscriptions.note(claimed, progress)))
        for (const { position: place, ...occurrence } of occurrences) {
          const message = { ...occurrence, cursor: cursorAt(projectId, place) }
          const failure = yield* callbacks
            .post(claimed, occurrence.eventId, message)
            .pipe(Effect.match({ onSuccess: () => undefined, onFailure: (failed) => failed }))
          if (failure && !isTooLarge(failure)) {
            yield* note({ fault: failure.fault })
            return false
          }
          yield* CrashPoint.hit("delivery.beforeRecord")
          if (!(yield* note({ position: place, told: true }))) return false
          if ((yield* Clock.currentTimeMillis) >= endMs) return false
        }
        return yield* note({ position, told: false })
      })

      /** Notifies a subscriber once that its access has ended, and deletes the subscription. */
      const terminate = Effect.fnUntraced(function* (projectId: ProjectId, claimed: ClaimedSubscription) {
        const message = { type: "terminated", error: revoked }
        yield* Effect.ignore(callbacks.post(claimed, `msg_terminated_${claimed.claimToken}`, message))
        // A subscription that was requested again meanwhile continues at once.
        const ended = Effect.andThen(subscriptions.removeEnded(claimed), subscriptions.release(claimed))
        yield* retryDuringOutages(database.inProject(projectId, ended))
      })

      /** One turn of a subscription: a bounded number of its events. Interrupting the turn releases the claim at once. */
      const turn = Effect.fnUntraced(
        function* (projectId: ProjectId, claimed: ClaimedSubscription) {
          const principal = yield* tokens.findByHash(claimed.tokenHash)
          const listening = listeningOf(claimed)
          if (!principal || !sees(principal, projectId) || listening === undefined) {
            yield* terminate(projectId, claimed)
            return
          }
          if (claimed.secrets.length === 0) {
            yield* Effect.logError(
              `The secret of ${claimed.handle} does not open: nothing is delivered to it`
            )
            yield* database.inProject(projectId, subscriptions.note(claimed, unsigned))
          }
          const endMs = (yield* Clock.currentTimeMillis) + eventLimits.turnMs
          let [position, told] = [claimed.position, claimed.secrets.length === 0 ? eventLimits.turnEvents : 0]
          while (told < eventLimits.turnEvents) {
            const looked = Effect.all([
              reading.look(listening, position, eventLimits.pollEvents),
              // Checked last: a kill switch turned on since the claim promises that nothing starts any more.
              switches.find
            ])
            const [seen, stop] = yield* database.inProject(projectId, looked)
            if (stop !== undefined || !(yield* deliver(projectId, claimed, seen, endMs))) break
            position = seen.position
            told += seen.occurrences.length
            if (!seen.hasMore || (yield* Clock.currentTimeMillis) >= endMs) break
          }
          yield* retryDuringOutages(database.inProject(projectId, subscriptions.release(claimed)))
        },
        (work, projectId, claimed) =>
          Effect.onInterrupt(work, () => database.inProject(projectId, subscriptions.release(claimed)))
      )

      const run = Effect.gen(function* () {
        const { occupy, round } = yield* makeFairSlots({
          places: eventLimits.deliverers,
          sparePlaces: eventLimits.spareDeliverers,
          placesPerProject: eventLimits.deliverersPerProject
        })
        // Every claim is running before this can be interrupted, so that an interrupt releases it.
        const begin = Effect.fnUntraced(function* (projectId: ProjectId, atMost: number) {
          yield* database.inProject(projectId, subscriptions.expire)
          const claimed = yield* database.inProject(projectId, subscriptions.claim(atMost))
          for (const one of claimed)
            yield* occupy(
              projectId,
              Effect.andThen(
                share("Deliveries", projectId, Effect.as(turn(projectId, one), 1)),
                // A slot is free, and there may be more to deliver.
                notifier.signal("deliveries")
              )
            )
          return claimed.length
        }, Effect.uninterruptible)
        return yield* drive(
          "Deliveries",
          "deliveries",
          untilNotified,
          Effect.flatMap(subscriptions.due, (due) =>
            round(due, (projectId, atMost) => share("Deliveries", projectId, begin(projectId, atMost)))
          )
        )
      }).pipe(Effect.scoped, Effect.provideService(Notifier, notifier))

      return EventDeliverer.of({ run })
    })
  )
}

const revoked = { code: -32_012, message: "The access of the subscription's token has ended" } as const

/** The row's secret does not open: nothing can be signed until the subscriber sends its secret again. */
const unsigned: Progress = { fault: "challenge_failed" }

/** An event too large for an address will always be too large, so it is skipped. */
const isTooLarge = ({ status }: CallbackFailed): boolean => status === 413

/** The event filter of a subscription; undefined where this version does not know the event any more. */
const listeningOf = ({ arguments: args, name }: ClaimedSubscription): Listening | undefined => {
  const type = eventTypes.get(name)
  const filter = type && Option.getOrUndefined(Schema.decodeUnknownOption(type.filter)(args))
  return type && filter && { type, filter }
}

// Streams one kind of event to one client each.
//
// A stream is a cursor that reads on whenever the feed grows. A client that reconnects sends its last cursor, so it misses nothing and gets
// nothing twice. The server does not know what a client has received, so a stream ends after a bounded amount and is opened again. The
// token is checked before each send: a caller who loses it or the project receives nothing more.

type Notify = (kind: string, params: Record<string, unknown>) => Effect.Effect<void>

export class EventStreams extends Context.Service<
  EventStreams,
  {
    /** Streams events until the client disconnects or the amount is reached. */
    readonly stream: (
      caller: McpCaller,
      listening: Listening,
      beginning: Beginning,
      context: ServerContext
    ) => Effect.Effect<void, ProtocolError>
  }
>()("@tropism/server/mcp/EventStreams") {
  static readonly layer = Layer.effect(
    EventStreams,
    Effect.gen(function* () {
      const database = yield* Database
      const reading = yield* EventReading
      const tokens = yield* Tokens
      const notifier = yield* Notifier
      const places = makeStreamSlots(
        { ofOwner: eventLimits.streamsPerUser, inAll: eventLimits.streams },
        () =>
          eventFault.exhausted(
            "streams",
            eventLimits.streamsPerUser,
            "Too many streams are open: close one first"
          )
      )

      const follow = Effect.fnUntraced(function* (
        { projectId, tokenHash }: McpCaller,
        listening: Listening,
        from: number,
        notify: Notify
      ) {
        const mailbox = yield* notifier.listen(`feed:${projectId}`)
        let [position, chars, saidAt] = [from, 0, yield* Clock.currentTimeMillis]
        while (chars < eventLimits.streamMaxChars) {
          const seen = yield* database.inProject(
            projectId,
            reading.look(listening, position, eventLimits.pollEvents)
          )
          position = seen.position
          const now = yield* Clock.currentTimeMillis
          const isTelling = seen.occurrences.length > 0 || now - saidAt >= streamLimits.heartbeatIntervalMs
          if (isTelling && !(yield* whoIs(tokens, { projectId, tokenHash }))) return
          for (const { position: place, ...occurrence } of seen.occurrences) {
            yield* notify("event", { ...occurrence, cursor: cursorAt(projectId, place) })
            chars += JSON.stringify(occurrence).length
            saidAt = now
          }
          if (now - saidAt >= streamLimits.heartbeatIntervalMs) {
            yield* notify("heartbeat", { cursor: cursorAt(projectId, position) })
            saidAt = now
          }
          if (!seen.hasMore) yield* nextNotification(mailbox, streamLimits.heartbeatIntervalMs)
        }
      }, Effect.scoped)

      const stream = Effect.fn("EventStreams.stream")(function* (
        caller: McpCaller,
        listening: Listening,
        beginning: Beginning,
        context: ServerContext
      ) {
        const { principal, projectId } = caller
        const { mcpReq } = context
        yield* Effect.acquireRelease(places.enter(`${projectId} ${principal.userId}`), places.leave)
        const notify: Notify = (kind, params) =>
          Effect.promise(() =>
            mcpReq.notify({
              method: `notifications/events/${kind}`,
              params: { ...params, _meta: { [subscriptionKey]: mcpReq.id } }
            })
          )
        const { position, truncated } = yield* database.inProject(projectId, reading.begin(beginning))
        yield* notify("active", { cursor: cursorAt(projectId, position), truncated })
        yield* Effect.raceFirst(follow(caller, listening, position, notify), gone(context))
      }, Effect.scoped)

      return EventStreams.of({ stream })
    })
  )
}

const subscriptionKey = "io.modelcontextprotocol/subscriptionId"
