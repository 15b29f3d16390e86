/**
 * Counts requests by whoever makes them: so many at once, and so many in every second after.
 *
 * Flow: **http** → graph → outbox → dispatch → run → tool → task
 *
 * A bucket of permits for each caller, which fills steadily and is never fuller
 * than its policy says. Who was not seen for a while has a full one, so only the
 * callers seen last are remembered, a bounded number. Whose a bucket is, and what
 * a request costs, is decided elsewhere; time is told, not looked up.
 */
import { RecentMap } from "./recent-map.ts"

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
