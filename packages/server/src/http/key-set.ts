/**
 * The keys of an identity provider, asked for when they are needed and kept while it is away.
 *
 * Flow: **http** → graph → outbox → dispatch → run → tool → task
 *
 * Whoever shows a key that nobody knows makes us ask once, and then not again for
 * a while: strangers must not be able to make this server call another as often
 * as they like. Keys that have grown old serve until there are newer ones.
 */
import { Clock, Effect, Predicate, Ref, Schema, type Scope, Semaphore, Stream } from "effect"
import { FetchHttpClient, HttpClient } from "effect/http"
import { createLocalJWKSet, type JSONWebKeySet } from "jose"
import { tokenLimits } from "./token-limits.ts"

type Find = ReturnType<typeof createLocalJWKSet>

export interface KeySet {
  /** Finds a key among those that are known; undefined before any are. */
  readonly current: Effect.Effect<Find | undefined>
  /** The same behind another question to the provider, unless it was asked a moment ago. */
  readonly renewed: Effect.Effect<Find | undefined>
}

interface Known {
  readonly find: Find | undefined
  readonly fetchedAt: number
  readonly askedAt: number
}

/** The provider did not answer with keys; what it said is not told. */
class KeysMissing extends Schema.TaggedError<KeysMissing>()("KeysMissing", { because: Schema.String }) {}

/** The keys at an address, until the scope ends. */
export const makeKeySet = Effect.fn("makeKeySet")(function* (
  url: URL
): Effect.fn.Return<KeySet, never, HttpClient.HttpClient | Scope.Scope> {
  const client = yield* HttpClient.HttpClient
  const scope = yield* Effect.scope
  const one = yield* Semaphore.make(1)
  const known = yield* Ref.make<Known>({
    find: undefined,
    fetchedAt: -tokenLimits.jwksMaxAgeMs,
    askedAt: Number.NEGATIVE_INFINITY
  })

  const ask = Effect.gen(function* () {
    const now = yield* Clock.currentTimeMillis
    const before = yield* Ref.get(known)
    if (now - before.askedAt < tokenLimits.jwksPauseMs) return before.find
    yield* Ref.set(known, { ...before, askedAt: now })
    const find = yield* readKeys(client, url).pipe(
      Effect.timeoutOrElse({
        duration: tokenLimits.jwksTimeoutMs,
        orElse: () => Effect.fail(new KeysMissing({ because: "no answer in time" }))
      }),
      Effect.catchTag("KeysMissing", ({ because }) =>
        Effect.as(
          Effect.logWarning(`The keys of TROPISM_JWT_JWKS_URL could not be read: ${because}`),
          undefined
        )
      )
    )
    if (find === undefined) return before.find
    yield* Ref.set(known, { find, fetchedAt: now, askedAt: now })
    return find
  })
  const renewed = one.withPermit(ask)

  const current = Effect.gen(function* () {
    const { fetchedAt, find } = yield* Ref.get(known)
    if (find === undefined) return yield* renewed
    if ((yield* Clock.currentTimeMillis) - fetchedAt >= tokenLimits.jwksMaxAgeMs)
      yield* Effect.forkIn(renewed, scope)
    return find
  })
  return { current, renewed }
})

const isKeySet = (value: unknown): value is JSONWebKeySet =>
  Predicate.hasProperty(value, "keys") &&
  Array.isArray(value.keys) &&
  value.keys.every((key) => Predicate.hasProperty(key, "kty") && typeof key.kty === "string")

const readKeys = (client: HttpClient.HttpClient, url: URL): Effect.Effect<Find, KeysMissing> =>
  Effect.gen(function* () {
    const response = yield* client.get(url, { headers: { accept: "application/json" } })
    if (response.status !== 200) return yield* new KeysMissing({ because: `status ${response.status}` })
    const parts: Array<Uint8Array> = []
    let bytes = 0
    yield* Stream.runForEach(response.stream, (part) => {
      bytes += part.byteLength
      parts.push(part)
      return bytes > tokenLimits.jwksMaxBytes
        ? Effect.fail(new KeysMissing({ because: "the answer is too large" }))
        : Effect.void
    })
    const keys = yield* Effect.try({
      try: (): unknown => JSON.parse(Buffer.concat(parts).toString("utf8")),
      catch: () => new KeysMissing({ because: "the answer is no JSON" })
    })
    if (!isKeySet(keys)) return yield* new KeysMissing({ because: "the answer is no set of keys" })
    // A secret that was published is none.
    const open = keys.keys.filter(({ kty }) => kty !== "oct")
    return createLocalJWKSet({ keys: open })
  }).pipe(
    Effect.provideService(FetchHttpClient.RequestInit, { redirect: "error" }),
    Effect.catchTag("HttpClientError", ({ reason }) => Effect.fail(new KeysMissing({ because: reason._tag })))
  )
