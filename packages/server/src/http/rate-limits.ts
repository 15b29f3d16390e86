/**
 * Rate limits per token, otherwise per client address.
 *
 * A token has its own bucket after it was found to be valid; a JWT shares one with all others of the same person. Until then, and without a
 * token, the address is charged, and much more for each refused credential, which slows guessing down. Buckets are in memory, per server:
 * they keep one caller from taking everything and are no accounting.
 */
import { createHash } from "node:crypto"
import { isIPv6 } from "node:net"
import { Clock, Context, Effect, Layer, Option, Redacted } from "effect"
import { HttpServerRequest, type HttpServerResponse } from "effect/http"
import { sessionOf } from "./authentication.ts"
import { edgeLimits } from "./limits.ts"
import { RecentMap } from "./recent-map.ts"
import type { Visit } from "./request-context.ts"

/** Requests per second of one token; null is unlimited. */
export type RateLimit = number | null

/** Parses `TROPISM_RATE_LIMIT`; undefined when it is not valid. */
export const readRateLimit = (text: string): RateLimit | undefined => {
  if (text === "off") return null
  return /^[1-9]\d{0,6}$/.test(text) ? Number(text) : undefined
}

/** A request that was counted. */
export interface Counted {
  readonly quota: Quota
  /** Adjusts the charge and the headers after the answer is known. */
  readonly answered: (response: HttpServerResponse.HttpServerResponse, visit: Visit) => Effect.Effect<void>
}

export class RateLimits extends Context.Service<
  RateLimits,
  {
    /** Charges a request to its caller; undefined where the request is free. */
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
  /** Holders of credentials that were found to be valid. */
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
            // A webhook has its own secret; a failure there says nothing about a token.
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

/** Health probes are free, so that monitoring works under any load. */
const isFree = (url: string): boolean => /^\/(?:health|ready)(?:\?|$)/.test(url)

const isWebhook = (url: string): boolean => url.startsWith("/api/hooks/")

/** The SHA-256 of the request's credential, as the database stores it; undefined without one. */
const credentialOf = (request: HttpServerRequest.HttpServerRequest): string | undefined => {
  const [scheme, token = ""] = (request.headers["authorization"] ?? "").split(" ", 2)
  const secret = scheme?.toLowerCase() === "bearer" ? token : Redacted.value(sessionOf(request))
  return secret === "" ? undefined : createHash("sha256").update(secret, "utf8").digest("hex")
}

/** For IPv6 the network: a client has all addresses of it. */
const addressOf = ({ remoteAddress }: HttpServerRequest.HttpServerRequest): string => {
  const address = Option.getOrElse(remoteAddress, () => "unknown")
  return isIPv6(address) && !address.startsWith("::ffff:") ? networkOf(address) : address
}

/** The first 64 bits of an IPv6 address. */
const networkOf = (address: string): string => {
  const [head = "", tail] = address.toLowerCase().split("::", 2)
  const before = head === "" ? [] : head.split(":")
  const after = tail === undefined || tail === "" ? [] : tail.split(":")
  const zeros = tail === undefined ? 0 : Math.max(0, 8 - before.length - after.length)
  return [...before, ...Array<string>(zeros).fill("0"), ...after].slice(0, 4).join(":")
}

// Token buckets: a burst, then a steady rate, per caller.
//
// A bucket refills steadily up to its policy's quota. A caller not seen for a while has a full one, so only a bounded number of recent
// callers is kept. The caller chooses keys, costs and the clock.

/** A quota per time window. */
export interface QuotaPolicy {
  readonly name: string
  /** The burst of an idle caller. */
  readonly quota: number
  /** The time in which an empty bucket refills. */
  readonly windowSeconds: number
}

/** The state of a bucket after a request. */
export interface Quota {
  readonly policy: QuotaPolicy
  /** Whole permits that remain. */
  readonly remaining: number
  /** Time until the bucket is full. */
  readonly fullInSeconds: number
  /** Time until the next permit; 0 when this request has one. */
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

  /** The number of remembered callers. */
  get size(): number {
    return this.#buckets.size
  }

  /** Takes one permit if there is one. */
  take(key: string, nowMs: number): Quota {
    const bucket = this.#filled(key, nowMs)
    const isGranted = bucket.permits >= 1
    if (isGranted) bucket.permits -= 1
    return this.#told(bucket.permits, isGranted)
  }

  /** Takes permits into debt: the caller waits until they have refilled. */
  charge(key: string, permits: number, nowMs: number): void {
    const bucket = this.#filled(key, nowMs)
    bucket.permits = Math.max(-this.policy.quota, bucket.permits - permits)
  }

  get #perMs(): number {
    return this.policy.quota / (this.policy.windowSeconds * 1_000)
  }

  /** The caller's bucket, refilled up to now. */
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

/** The rate limit headers of draft-ietf-httpapi-ratelimit-headers-10. */
export const quotaHeaders = ({ fullInSeconds, policy, remaining, retryAfterSeconds }: Quota) => ({
  "ratelimit-policy": `"${policy.name}";q=${policy.quota};w=${policy.windowSeconds}`,
  ratelimit: `"${policy.name}";r=${remaining};t=${fullInSeconds}`,
  ...(retryAfterSeconds === 0 ? {} : { "retry-after": String(retryAfterSeconds) })
})
