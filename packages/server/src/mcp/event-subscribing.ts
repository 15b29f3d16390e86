/**
 * Lets a client be told of events at an address of its own, and ends that.
 *
 * Flow: **mcp** → graph → outbox → dispatch → run → tool → task
 *
 * An address is asked before anything is delivered to it, whether it wants that:
 * nobody floods with our events an address that is not his. It is asked outside of
 * any transaction, once for each user and address.
 */
import { createHash } from "node:crypto"
import type { ProtocolError } from "@modelcontextprotocol/server"
import { canonicalJson } from "@tropism/domain/json"
import { Clock, Context, Effect, Layer, type Schema } from "effect"
import { Database } from "../database/database.ts"
import type { SealingRefused } from "../database/sealing.ts"
import { type Callback, type CallbackFailed, Callbacks, isSecret } from "./callbacks.ts"
import { badParams } from "./door-server.ts"
import { cursorAt } from "./event-cursors.ts"
import { eventLimits } from "./event-limits.ts"
import {
  eventFault,
  readBeginning,
  readListening,
  SubscribeParams,
  UnsubscribeParams
} from "./event-params.ts"
import { EventReading, type Listening } from "./event-reading.ts"
import { type DeliveryStatus, EventSubscriptions } from "./event-subscriptions.ts"
import { readParams } from "./method-params.ts"
import type { McpCaller } from "./part.ts"

/** What a subscriber is answered. */
export interface Subscribed {
  readonly id: string
  readonly refreshBefore: string
  readonly cursor: string
  readonly truncated: boolean
  /** Of one that was there before: how deliveries went until now. */
  readonly deliveryStatus?: DeliveryStatus
}

type Params = Readonly<Record<string, unknown>>

export class EventSubscribing extends Context.Service<
  EventSubscribing,
  {
    /** Makes a subscription, or refreshes the one to the same. */
    readonly subscribe: (caller: McpCaller, params: Params) => Effect.Effect<Subscribed, ProtocolError>
    /** Ends a subscription at once. */
    readonly unsubscribe: (caller: McpCaller, params: Params) => Effect.Effect<void, ProtocolError>
  }
>()("@tropism/server/mcp/EventSubscribing") {
  static readonly layer = Layer.effect(
    EventSubscribing,
    Effect.gen(function* () {
      const database = yield* Database
      const subscriptions = yield* EventSubscriptions
      const reading = yield* EventReading
      const callbacks = yield* Callbacks
      const mayChallenge = makeChallengeRate()

      const checkAddress = (url: string, isServerToken: boolean): Effect.Effect<string, ProtocolError> => {
        const read = url.length <= eventLimits.urlMaxChars && URL.canParse(url) ? new URL(url) : undefined
        return read &&
          read.username === "" &&
          read.password === "" &&
          read.hash === "" &&
          callbacks.mayCall(read, isServerToken)
          ? Effect.succeed(url)
          : Effect.fail(
              badParams(
                "Invalid params: /delivery/url: This must be an https address without a user name, a password or a fragment"
              )
            )
      }

      const challenge = Effect.fnUntraced(function* (callback: Callback) {
        if (!(yield* mayChallenge(new URL(callback.url).host)))
          return yield* Effect.fail(
            eventFault.exhausted(
              "verifications",
              eventLimits.challengesPerHostAndMinute,
              "This host was asked too often whether it wants deliveries: subscribe again in a minute"
            )
          )
        yield* Effect.mapError(callbacks.challenge(callback), ({ fault }: CallbackFailed) =>
          eventFault.callback(fault, sentences[fault] ?? "The address did not answer as it should")
        )
      })

      const subscribe = Effect.fn("EventSubscribing.subscribe")(function* (
        caller: McpCaller,
        params: Params
      ) {
        const { principal, projectId, tokenHash } = caller
        const asked = yield* readParams(SubscribeParams, params)
        const { delivery, ttlMs } = asked
        yield* checkMode(delivery.mode)
        const url = yield* checkAddress(delivery.url, principal.projectIds === null)
        const { secret } = delivery
        if (!isSecret(secret))
          return yield* Effect.fail(
            badParams(
              "Invalid params: /delivery/secret: This must be whsec_ and 24 to 64 random bytes in base64"
            )
          )
        const listening = yield* readListening(asked)
        const beginning = yield* readBeginning(projectId, asked)
        const handle = handleOf(caller, url, listening)
        const isKnown = yield* database.inProject(projectId, subscriptions.isKnown(principal.userId, url))
        if (!isKnown) yield* challenge({ url, handle, secrets: [secret] })
        const kept = yield* database
          .inProject(
            projectId,
            Effect.gen(function* () {
              const { position, truncated } = yield* reading.begin(beginning)
              const subscription = yield* subscriptions.keep({
                userId: principal.userId,
                handle,
                name: listening.type.name,
                arguments: saidOf(listening),
                url,
                secret,
                tokenHash,
                position,
                ttlMs: grantedMs(ttlMs)
              })
              return subscription && { ...subscription, truncated }
            })
          )
          .pipe(Effect.catch(unsealable))
        if (kept === undefined)
          return yield* Effect.fail(
            eventFault.exhausted(
              "subscriptions",
              eventLimits.subscriptionsPerUser,
              `You have ${eventLimits.subscriptionsPerUser} subscriptions, as many as there may be: end one first`
            )
          )
        return {
          id: handle,
          refreshBefore: kept.refreshBefore,
          cursor: cursorAt(projectId, kept.position),
          truncated: kept.before === null && kept.truncated,
          ...(kept.before === null ? {} : { deliveryStatus: kept.before })
        }
      })

      const unsubscribe = Effect.fn("EventSubscribing.unsubscribe")(function* (
        caller: McpCaller,
        params: Params
      ) {
        const asked = yield* readParams(UnsubscribeParams, params)
        yield* checkMode(asked.delivery.mode)
        const handle = handleOf(caller, asked.delivery.url, yield* readListening(asked))
        if (!(yield* database.inProject(caller.projectId, subscriptions.remove(handle))))
          return yield* Effect.fail(eventFault.notFound("subscription", "There is no such subscription"))
      })

      return EventSubscribing.of({ subscribe, unsubscribe })
    })
  )
}

const sentences: Readonly<Record<string, string>> = {
  connection_refused: "The address could not be reached, or may not be",
  timeout: "The address did not answer in time",
  tls_error: "No secure connection to the address could be made",
  challenge_failed: "The address did not echo the challenge, so nothing is delivered to it"
}

/** Whoever asks learns that no webhook can be had here; why, the operator learns. */
const unsealable = ({ reason }: SealingRefused): Effect.Effect<never, ProtocolError> =>
  Effect.andThen(
    Effect.logError(
      reason === "noKey"
        ? "No subscription can be kept, because there is no key to seal its secret with: set TROPISM_ENCRYPTION_KEY"
        : "No subscription can be kept, because the other servers on this database seal secrets with another key: set the same TROPISM_ENCRYPTION_KEY at all of them",
      { code: reason }
    ),
    Effect.fail(
      eventFault.unsupported(
        "deliveryMode",
        "webhook",
        "This server cannot keep a secret, so it delivers to no address: its log says why. Poll and stream work"
      )
    )
  )

const checkMode = (mode: string | undefined): Effect.Effect<void, ProtocolError> =>
  mode === undefined || mode === "webhook"
    ? Effect.void
    : Effect.fail(
        eventFault.unsupported(
          "deliveryMode",
          mode,
          "Only a webhook is subscribed to: poll and stream need no subscription"
        )
      )

/** How long a subscription is granted; without an end is as long as there is. */
const grantedMs = (wanted: number | null | undefined): number => {
  const { subscriptionMaxMs, subscriptionMinMs, subscriptionMs } = eventLimits
  if (wanted === null) return subscriptionMaxMs
  return Math.min(Math.max(wanted ?? subscriptionMs, subscriptionMinMs), subscriptionMaxMs)
}

/** The arguments of which something is said. */
const saidOf = ({ filter }: Listening): Schema.Json =>
  JSON.parse(
    JSON.stringify(
      Object.fromEntries(Object.entries(filter).filter(([, value]) => value !== null && value !== undefined))
    )
  )

/** The name of a subscription: it follows from who listens, where, and to what. */
const handleOf = ({ principal, projectId }: McpCaller, url: string, listening: Listening): string => {
  const key = canonicalJson([projectId, principal.userId, url, listening.type.name, saidOf(listening)])
  return `sub_${createHash("sha256").update(key, "utf8").digest("hex").slice(0, 32)}`
}

/** Whether a host may be asked once more in this minute. */
const makeChallengeRate = () => {
  const asked = new Map<string, { readonly minute: number; count: number }>()
  return (host: string): Effect.Effect<boolean> =>
    Effect.map(Clock.currentTimeMillis, (now) => {
      const minute = Math.floor(now / 60_000)
      const known = asked.get(host)
      const here = known?.minute === minute ? known : { minute, count: 0 }
      here.count += 1
      asked.delete(host)
      asked.set(host, here)
      for (const oldest of asked.keys()) if (asked.size > eventLimits.challengedHosts) asked.delete(oldest)
      return here.count <= eventLimits.challengesPerHostAndMinute
    })
}
