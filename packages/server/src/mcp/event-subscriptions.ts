/**
 * Stores webhook subscriptions: address, position and lifetime.
 *
 * A subscription is one listener, address, event and arguments; subscribing again refreshes it. It is `active` until too many deliveries in
 * a row have failed, then `suspended` until refreshed. It ends at its expiry, by its owner, or with its token. **Invariant**: one server
 * delivers it at a time; its claim guards every write.
 */
import { createHash } from "node:crypto"
import type { ProtocolError } from "@modelcontextprotocol/server"
import type { ProjectId, UserId } from "@tropism/domain/ids"
import { canonicalJson } from "@tropism/domain/json"
import { Context, Effect, Layer, type Schema, Clock } from "effect"
import { SqlClient } from "effect/sql"
import { onlyRow, orDie, ProjectTransaction, Database } from "../database/database.ts"
import type { SealingRefused } from "../database/sealing.ts"
import { Ids } from "../ids.ts"
import { isStopped } from "../runs/kill-switches.ts"
import type { McpCaller } from "./capability.ts"
import {
  type CallbackFault,
  makeEventSecrets,
  type Callback,
  type CallbackFailed,
  Callbacks,
  isSecret
} from "./event-callbacks.ts"
import {
  eventLimits,
  cursorAt,
  eventFault,
  readBeginning,
  readListening,
  SubscribeParams,
  UnsubscribeParams,
  EventReading,
  type Listening
} from "./events.ts"
import { badParams, readParams } from "./server.ts"

/** A subscription to store. */
export interface WantedSubscription {
  readonly userId: UserId
  readonly handle: string
  readonly name: string
  readonly arguments: Schema.Json
  readonly url: string
  /** As the subscriber supplied it. */
  readonly secret: string
  readonly tokenHash: string
  readonly position: number
  readonly ttlMs: number
}

/** The status of deliveries. */
interface DeliveryStatus {
  readonly active: boolean
  readonly lastDeliveryAt: string | null
  readonly lastError: string | null
  readonly failedSince?: string
}

/** A stored subscription; `before` is the delivery status up to this request. */
export interface KeptSubscription {
  readonly position: number
  readonly refreshBefore: string
  readonly before: DeliveryStatus | null
}

/** A subscription that this server has claimed for delivery. */
export interface ClaimedSubscription {
  readonly id: string
  readonly claimToken: string
  readonly handle: string
  readonly name: string
  readonly arguments: Schema.Json
  readonly url: string
  /** As the subscribers supplied them, newest first; empty where the stored ones do not open. */
  readonly secrets: ReadonlyArray<string>
  readonly tokenHash: string
  readonly position: number
}

/** The result of a delivery: the position up to which all is delivered, or a fault. */
export type Progress =
  | { readonly position: number; readonly told: boolean }
  | { readonly fault: CallbackFault }

type InProject<A> = Effect.Effect<A, never, ProjectTransaction>

export class EventSubscriptions extends Context.Service<
  EventSubscriptions,
  {
    /** Whether an address has already confirmed that it wants this user's deliveries. */
    readonly isKnown: (userId: UserId, url: string) => InProject<boolean>
    /** Creates or refreshes a subscription; undefined when the user has reached the maximum. */
    readonly keep: (
      wanted: WantedSubscription
    ) => Effect.Effect<KeptSubscription | undefined, SealingRefused, ProjectTransaction>
    /** Deletes one; false when there is none. */
    readonly remove: (handle: string) => InProject<boolean>
    /** Deletes one whose token has ended, unless it was requested under another token since the claim. */
    readonly removeEnded: (claimed: ClaimedSubscription) => InProject<void>
    /**
     * Claims subscriptions with undelivered events whose secrets this server can open, longest-waiting first. None while a kill switch is
     * on.
     */
    readonly claim: (atMost: number) => InProject<ReadonlyArray<ClaimedSubscription>>
    /**
     * Records the result of a delivery. A fault ends the claim, so it counts once however often it is reported. False when another server
     * has the claim, or a kill switch is on.
     */
    readonly note: (claimed: ClaimedSubscription, progress: Progress) => InProject<boolean>
    /** Releases a claim. */
    readonly release: (claimed: ClaimedSubscription) => InProject<void>
    /** Deletes expired ones. */
    readonly expire: InProject<void>
    /** Projects with due deliveries. */
    readonly due: Effect.Effect<ReadonlyArray<{ readonly projectId: ProjectId }>>
  }
>()("@tropism/server/mcp/EventSubscriptions") {
  static readonly layer = Layer.effect(
    EventSubscriptions,
    Effect.gen(function* () {
      const sql = yield* SqlClient.SqlClient
      const ids = yield* Ids
      const secrets = yield* makeEventSecrets

      /** Opened secrets, newest first; empty when the newest does not open. */
      const openedOnes = (projectId: ProjectId, handle: string, newest: string, older: string | null) => {
        const [first, second] = [newest, older].map((kept) =>
          kept === null ? undefined : secrets.open(projectId, handle, kept)
        )
        return first === undefined ? [] : second === undefined ? [first] : [first, second]
      }

      const isKnown = Effect.fn("EventSubscriptions.isKnown")(function* (userId: UserId, url: string) {
        const { projectId } = yield* ProjectTransaction
        const rows = yield* sql`
          select 1 from kb.event_subscriptions where project_id = ${projectId} and user_id = ${userId} and url = ${url} limit 1`
        return rows.length > 0
      }, orDie)

      const keep = Effect.fn("EventSubscriptions.keep")(function* (wanted: WantedSubscription) {
        const { projectId } = yield* ProjectTransaction
        const { handle, name, position, tokenHash, ttlMs, url, userId } = wanted
        const secret = yield* secrets.seal(handle, wanted.secret)
        // Serialized, so that two requests cannot both take the last slot.
        yield* sql`select pg_advisory_xact_lock(hashtextextended(${`event subscriptions ${projectId} ${userId}`}, 0))`
        const [kept] = yield* sql<KeptRow>`
          select *, expires_at is null or expires_at > now() as is_live from kb.event_subscriptions
          where project_id = ${projectId} and handle = ${handle} for no key update`
        const before = kept?.isLive === true ? kept : undefined
        const own = yield* Effect.flatMap(
          sql<{ readonly count: number }>`
            select count(*)::int as count from kb.event_subscriptions where project_id = ${projectId} and user_id = ${userId}`,
          onlyRow
        )
        if (before === undefined && own.count >= eventLimits.subscriptionsPerUser) return undefined
        const isSame = kept !== undefined && secrets.open(projectId, handle, kept.secret) === wanted.secret
        const row = yield* Effect.flatMap(
          sql<KeptRow>`
            insert into kb.event_subscriptions as kept
              (id, project_id, user_id, handle, name, arguments, url, secret, token_hash, position, expires_at)
            values (${yield* ids.next}, ${projectId}, ${userId}, ${handle}, ${name}, ${JSON.stringify(wanted.arguments)}::text::jsonb,
              ${url}, ${secret}, ${tokenHash}, ${position}, now() + make_interval(secs => ${ttlMs / 1_000}::float8))
            on conflict (project_id, handle) do update set
              previous_secret = case when ${isSame}::boolean then kept.previous_secret else kept.secret end,
              previous_secret_until = case when ${isSame}::boolean then kept.previous_secret_until
                else now() + make_interval(secs => ${eventLimits.secretGraceMs / 1_000}::float8) end,
              secret = excluded.secret, token_hash = excluded.token_hash, expires_at = excluded.expires_at,
              position = case when ${before === undefined}::boolean then excluded.position else kept.position end,
              status = 'active', attempts = 0, next_attempt_at = now(), failed_since = null, last_error = null
            returning *`,
          onlyRow
        )
        return {
          position: Number(row.position),
          refreshBefore: row.expiresAt.toISOString(),
          before: before === undefined ? null : statusOf(before)
        }
      }, orDie)

      const remove = Effect.fn("EventSubscriptions.remove")(function* (handle: string) {
        const { projectId } = yield* ProjectTransaction
        const rows = yield* sql`
          delete from kb.event_subscriptions where project_id = ${projectId} and handle = ${handle} returning id`
        return rows.length > 0
      }, orDie)

      const removeEnded = Effect.fn("EventSubscriptions.removeEnded")(function* ({
        claimToken,
        id,
        tokenHash
      }: ClaimedSubscription) {
        const { projectId } = yield* ProjectTransaction
        yield* sql`
          delete from kb.event_subscriptions
          where project_id = ${projectId} and id = ${id} and claim_token = ${claimToken} and token_hash = ${tokenHash}`
      }, orDie)

      const until = sql`now() + make_interval(secs => ${eventLimits.claimMs / 1_000}::float8)`

      const claim = Effect.fn("EventSubscriptions.claim")(function* (atMost: number) {
        const { projectId } = yield* ProjectTransaction
        const claimToken = yield* ids.next
        const rows = yield* sql<ClaimedRow>`
          update kb.event_subscriptions set claim_token = ${claimToken}::uuid, claimed_until = ${until}
          where project_id = ${projectId} and id = any(array(
            select waiting.id from kb.event_subscriptions waiting join kb.feeds feed on feed.project_id = waiting.project_id
            where waiting.project_id = ${projectId} and waiting.status = 'active' and waiting.position < feed.last_position
              and waiting.next_attempt_at <= now() and (waiting.expires_at is null or waiting.expires_at > now())
              and (waiting.claimed_until is null or waiting.claimed_until < now())
              and (waiting.secret not like 'v1.%' or split_part(waiting.secret, '.', 2) = any(${secrets.keyIds}::text[]))
              and not ${isStopped(sql)}
            order by greatest(waiting.next_attempt_at, waiting.last_delivery_at) limit ${atMost} for no key update of waiting skip locked))
          returning *, case when previous_secret_until > now() then previous_secret end as older_secret`
        return rows.map(({ olderSecret, position, secret, ...row }) => ({
          ...row,
          position: Number(position),
          secrets: openedOnes(projectId, row.handle, secret, olderSecret)
        }))
      }, orDie)

      const note = Effect.fn("EventSubscriptions.note")(function* (
        { claimToken, id, name }: ClaimedSubscription,
        progress: Progress
      ) {
        const { projectId } = yield* ProjectTransaction
        const { backOffBaseMs, backOffMaxMs, maxAttempts } = eventLimits
        const changes =
          "fault" in progress
            ? sql`claim_token = null, claimed_until = null, attempts = attempts + 1, last_error = ${progress.fault}, failed_since = coalesce(failed_since, now()),
                next_attempt_at = now() + make_interval(secs => least(${backOffMaxMs}::float8, ${backOffBaseMs}::float8 * 2 ^ attempts) / 1000),
                status = case when attempts + 1 >= ${maxAttempts}::int then 'suspended' else status end`
            : sql`claimed_until = ${until}, position = ${progress.position}, attempts = 0, last_error = null, failed_since = null,
                last_delivery_at = case when ${progress.told} then now() else last_delivery_at end`
        const [row] = yield* sql<{ readonly status: string; readonly isStopped: boolean }>`
          update kb.event_subscriptions set ${changes}
          where project_id = ${projectId} and id = ${id} and claim_token = ${claimToken}
          returning status, ${isStopped(sql)} as is_stopped`
        // A claimed subscription was active, so this is the change to suspended. The address is not logged: it may contain a secret.
        if (row?.status === "suspended" && "fault" in progress)
          yield* sql.afterCommit(
            Effect.logWarning(
              `An event subscription is suspended until it is refreshed: ${maxAttempts} deliveries in a row failed`,
              { subscriptionId: id, projectId, event: name, fault: progress.fault }
            )
          )
        return row !== undefined && !row.isStopped
      }, orDie)

      const release = Effect.fn("EventSubscriptions.release")(function* ({
        claimToken,
        id
      }: ClaimedSubscription) {
        const { projectId } = yield* ProjectTransaction
        yield* sql`
          update kb.event_subscriptions set claim_token = null, claimed_until = null
          where project_id = ${projectId} and id = ${id} and claim_token = ${claimToken}`
      }, orDie)

      const expire = Effect.gen(function* () {
        const { projectId } = yield* ProjectTransaction
        yield* sql`delete from kb.event_subscriptions where project_id = ${projectId} and expires_at <= now()`
      }).pipe(orDie)

      const due = orDie(
        sql<{
          projectId: ProjectId
        }>`select project_id from kb.projects_with_due_deliveries() as project_id order by project_id`
      )

      return EventSubscriptions.of({ isKnown, keep, remove, removeEnded, claim, note, release, expire, due })
    })
  )
}

interface KeptRow {
  readonly secret: string
  readonly isLive?: boolean
  readonly position: bigint
  readonly expiresAt: Date
  readonly status: string
  readonly lastDeliveryAt: Date | null
  readonly lastError: string | null
  readonly failedSince: Date | null
}

interface ClaimedRow extends Omit<ClaimedSubscription, "position" | "secrets"> {
  readonly position: bigint
  readonly secret: string
  readonly olderSecret: string | null
}

const statusOf = ({ failedSince, lastDeliveryAt, lastError, status }: KeptRow): DeliveryStatus => ({
  active: status === "active",
  lastDeliveryAt: lastDeliveryAt?.toISOString() ?? null,
  lastError,
  ...(failedSince === null ? {} : { failedSince: failedSince.toISOString() })
})

// Creates and ends webhook subscriptions.
//
// An address must confirm before the first delivery, so that no one can flood another's address with our events. The confirmation runs
// outside any transaction, once per user and address.

/** The answer to a subscriber. */
export interface Subscribed {
  readonly id: string
  readonly refreshBefore: string
  readonly cursor: string
  readonly truncated: boolean
  /** For an existing subscription: its delivery status so far. */
  readonly deliveryStatus?: DeliveryStatus
}

type Params = Readonly<Record<string, unknown>>

export class EventSubscribing extends Context.Service<
  EventSubscribing,
  {
    /** Creates a subscription, or refreshes the identical one. */
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

/** The caller learns only that webhooks are unavailable here; the operator learns why. */
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

/** The granted lifetime; a request without end gets the maximum. */
const grantedMs = (wanted: number | null | undefined): number => {
  const { subscriptionMaxMs, subscriptionMinMs, subscriptionMs } = eventLimits
  if (wanted === null) return subscriptionMaxMs
  return Math.min(Math.max(wanted ?? subscriptionMs, subscriptionMinMs), subscriptionMaxMs)
}

/** The arguments that are set. */
const saidOf = ({ filter }: Listening): Schema.Json =>
  JSON.parse(
    JSON.stringify(
      Object.fromEntries(Object.entries(filter).filter(([, value]) => value !== null && value !== undefined))
    )
  )

/** The id of a subscription, derived from the listener, the address and the event. */
const handleOf = ({ principal, projectId }: McpCaller, url: string, listening: Listening): string => {
  const key = canonicalJson([projectId, principal.userId, url, listening.type.name, saidOf(listening)])
  return `sub_${createHash("sha256").update(key, "utf8").digest("hex").slice(0, 32)}`
}

/** Limits confirmations per host and minute. */
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
