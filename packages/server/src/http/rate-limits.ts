/**
 * How often somebody may ask: by the token that they show, else by where they come from.
 *
 * A token is counted by itself once it was found to be good, and a JWT with all
 * others of the same person; until then, and without one, the address is charged,
 * and much more for each credential that is refused, so that guessing is slow.
 * Counted in memory, by each server for itself: it keeps one caller from taking
 * all, and is no accounting.
 */
import { createHash } from "node:crypto"
import { isIPv6 } from "node:net"
import { Clock, Context, Effect, Layer, Option, Redacted } from "effect"
import { HttpServerRequest, type HttpServerResponse } from "effect/http"
import { sessionOf } from "./authentication.ts"
import { edgeLimits } from "./limits.ts"
import { RecentMap } from "./recent-map.ts"
import type { Visit } from "./request-context.ts"

/** Requests per second of one token; null is without a bound. */
export type RateLimit = number | null

/** What `TROPISM_RATE_LIMIT` says; undefined when it says nothing that can be meant. */
export const readRateLimit = (text: string): RateLimit | undefined => {
  if (text === "off") return null
  return /^[1-9]\d{0,6}$/.test(text) ? Number(text) : undefined
}

/** A request that was counted. */
export interface Counted {
  readonly quota: Quota
  /** Says how it was answered. */
  readonly answered: (response: HttpServerResponse.HttpServerResponse, visit: Visit) => Effect.Effect<void>
}

export class RateLimits extends Context.Service<
  RateLimits,
  {
    /** Counts a request by whoever makes it; undefined where nothing is counted. */
    readonly count: Effect.Effect<Counted | undefined, never, HttpServerRequest.HttpServerRequest>
  }
>()("@tropism/server/http/RateLimits") {
  static readonly layer = (rateLimit: RateLimit) =>
    Layer.sync(RateLimits, () =>
      RateLimits.of({ count: rateLimit === null ? Effect.succeed(undefined) : counting(rateLimit) })
    )
}

const counting = (perSecond: number) => {
  const { addressRequestsPerSecond, addressWindowSeconds, countedCallers, tokenWindowSeconds } = edgeLimits
  const tokens = new TokenBuckets(
    { name: "token", quota: perSecond * tokenWindowSeconds, windowSeconds: tokenWindowSeconds },
    countedCallers
  )
  /** Who asks by a credential that was found to be good. */
  const holders = new RecentMap<string>(countedCallers)
  const addresses = new TokenBuckets(
    {
      name: "address",
      quota: addressRequestsPerSecond * addressWindowSeconds,
      windowSeconds: addressWindowSeconds
    },
    countedCallers
  )
  return Effect.gen(function* () {
    const request = yield* HttpServerRequest.HttpServerRequest
    if (isFree(request.url)) return undefined
    const nowMs = yield* Clock.currentTimeMillis
    const credential = credentialOf(request)
    const holder = credential === undefined ? undefined : holders.get(credential)
    const address = addressOf(request)
    const counted: Counted = {
      quota: holder === undefined ? addresses.take(address, nowMs) : tokens.take(holder, nowMs),
      answered: ({ status }, { admitted }) =>
        Effect.map(Clock.currentTimeMillis, (thenMs) => {
          if (status === 401) {
            addresses.charge(address, edgeLimits.refusedCredentialRequests, thenMs)
            // A webhook asks for a secret of its own, and says nothing of a token that is good elsewhere.
            if (credential === undefined || holder === undefined) return
            if (isWebhook(request.url)) tokens.charge(holder, edgeLimits.refusedCredentialRequests, thenMs)
            else holders.delete(credential)
          } else if (holder === undefined && admitted !== undefined && admitted.credential === credential) {
            holders.set(credential, admitted.holder)
            tokens.charge(admitted.holder, 1, thenMs)
          }
        })
    }
    return counted
  })
}

/** Whoever watches over a server asks these, and is to be told the truth also in a storm. */
const isFree = (url: string): boolean => /^\/(?:health|ready)(?:\?|$)/.test(url)

const isWebhook = (url: string): boolean => url.startsWith("/api/hooks/")

/** The SHA-256 of what a request shows, as the database knows it; undefined when it shows nothing. */
const credentialOf = (request: HttpServerRequest.HttpServerRequest): string | undefined => {
  const [scheme, token = ""] = (request.headers["authorization"] ?? "").split(" ", 2)
  const secret = scheme?.toLowerCase() === "bearer" ? token : Redacted.value(sessionOf(request))
  return secret === "" ? undefined : createHash("sha256").update(secret, "utf8").digest("hex")
}

/** Of version 6 the network: whoever has one address of it has all. */
const addressOf = ({ remoteAddress }: HttpServerRequest.HttpServerRequest): string => {
  const address = Option.getOrElse(remoteAddress, () => "unknown")
  return isIPv6(address) && !address.startsWith("::ffff:") ? networkOf(address) : address
}

/** The first 64 bits of an address of version 6. */
const networkOf = (address: string): string => {
  const [head = "", tail] = address.toLowerCase().split("::", 2)
  const before = head === "" ? [] : head.split(":")
  const after = tail === undefined || tail === "" ? [] : tail.split(":")
  const zeros = tail === undefined ? 0 : Math.max(0, 8 - before.length - after.length)
  return [...before, ...Array<string>(zeros).fill("0"), ...after].slice(0, 4).join(":")
}

// Counts requests by whoever makes them: so many at once, and so many in every second after.
//
// A bucket of permits for each caller, which fills steadily and is never fuller
// than its policy says. Who was not seen for a while has a full one, so only the
// callers seen last are remembered, a bounded number. Whose a bucket is, and what
// a request costs, is decided elsewhere; time is told, not looked up.

/** How much of something there is in how long. */
export interface QuotaPolicy {
  readonly name: string
  /** What a caller who was quiet may take at once. */
  readonly quota: number
  /** How long an empty bucket takes to fill. */
  readonly windowSeconds: number
}

/** How a caller stands after having asked. */
export interface Quota {
  readonly policy: QuotaPolicy
  /** Whole permits left. */
  readonly remaining: number
  /** Until the bucket is full again. */
  readonly fullInSeconds: number
  /** Until the next permit; 0 when this request has one. */
  readonly retryAfterSeconds: number
}

interface Bucket {
  permits: number
  atMs: number
}

export class TokenBuckets {
  readonly policy: QuotaPolicy
  readonly #buckets: RecentMap<Bucket>

  constructor(policy: QuotaPolicy, capacity: number) {
    this.policy = policy
    this.#buckets = new RecentMap(capacity)
  }

  /** Callers that are remembered. */
  get size(): number {
    return this.#buckets.size
  }

  /** Asks for one permit; without one nothing is taken. */
  take(key: string, nowMs: number): Quota {
    const bucket = this.#filled(key, nowMs)
    const isGranted = bucket.permits >= 1
    if (isGranted) bucket.permits -= 1
    return this.#told(bucket.permits, isGranted)
  }

  /** Takes permits that may not be there: the caller waits until they have come. */
  charge(key: string, permits: number, nowMs: number): void {
    const bucket = this.#filled(key, nowMs)
    bucket.permits = Math.max(-this.policy.quota, bucket.permits - permits)
  }

  get #perMs(): number {
    return this.policy.quota / (this.policy.windowSeconds * 1_000)
  }

  /** The caller's bucket as it is now. */
  #filled(key: string, nowMs: number): Bucket {
    const { quota } = this.policy
    const bucket = this.#buckets.get(key) ?? this.#begun(key, nowMs)
    bucket.permits = Math.min(quota, bucket.permits + Math.max(0, nowMs - bucket.atMs) * this.#perMs)
    bucket.atMs = nowMs
    return bucket
  }

  #begun(key: string, nowMs: number): Bucket {
    const bucket = { permits: this.policy.quota, atMs: nowMs }
    this.#buckets.set(key, bucket)
    return bucket
  }

  #told(permits: number, isGranted: boolean): Quota {
    const seconds = (missing: number) => Math.max(0, Math.ceil(missing / this.#perMs / 1_000))
    return {
      policy: this.policy,
      remaining: Math.max(0, Math.floor(permits)),
      fullInSeconds: seconds(this.policy.quota - permits),
      retryAfterSeconds: isGranted ? 0 : Math.max(1, seconds(1 - permits))
    }
  }
}

/** The fields by which a client paces itself, as draft-ietf-httpapi-ratelimit-headers-10 writes them. */
export const quotaHeaders = ({ fullInSeconds, policy, remaining, retryAfterSeconds }: Quota) => ({
  "ratelimit-policy": `"${policy.name}";q=${policy.quota};w=${policy.windowSeconds}`,
  ratelimit: `"${policy.name}";r=${remaining};t=${fullInSeconds}`,
  ...(retryAfterSeconds === 0 ? {} : { "retry-after": String(retryAfterSeconds) })
})
