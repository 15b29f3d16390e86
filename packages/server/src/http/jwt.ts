/**
 * Verifies JWTs of an issuer that the operator trusts.
 *
 * **Invariant**: a JWT identifies a person and never grants rights; those come from memberships. The one exception is the claim that the
 * operator names for admins of the server. The allowed algorithms follow from the key's type alone, so a public key cannot be used as a
 * shared secret.
 */
import { type KeyObject, createPublicKey } from "node:crypto"
import { UserId } from "@tropism/domain/ids"
import {
  Clock,
  Context,
  Effect,
  Option,
  Redacted,
  Schema,
  Predicate,
  Ref,
  type Scope,
  Semaphore,
  Stream,
  Config
} from "effect"
import { FetchHttpClient, HttpClient } from "effect/http"
import {
  decodeJwt,
  errors,
  type JWTPayload,
  type JWTVerifyGetKey,
  jwtVerify,
  createLocalJWKSet,
  type JSONWebKeySet
} from "jose"
import { tokenLimits } from "./limits.ts"
import { isLocal } from "./origins.ts"

/** The keys that verify JWTs. */
export type JwtKeys =
  | { readonly kind: "secret"; readonly secret: Redacted.Redacted<Uint8Array> }
  | { readonly kind: "publicKey"; readonly key: KeyObject }
  | { readonly kind: "keySet"; readonly keys: KeySet }

interface JwtTerms {
  readonly issuer: string
  readonly audience: string
  /** The claim that makes an admin of the server, and its value. */
  readonly adminClaim: { readonly name: string; readonly value: string } | undefined
}

/** A person known to the issuer. */
export interface Bearer {
  readonly userId: UserId
  readonly isServerAdmin: boolean
  readonly expiresAt: Date
}

export interface Issuer {
  /** The claim that names them. */
  readonly name: string
  /** The bearer of a JWT; undefined when it is not valid. */
  readonly verify: (jwt: Redacted.Redacted) => Effect.Effect<Bearer | undefined>
}

/** The issuer whose JWTs are accepted; undefined where there is none. */
export class TrustedIssuer extends Context.Reference<Issuer | undefined>(
  "@tropism/server/http/TrustedIssuer",
  { defaultValue: () => undefined }
) {}

/** Whether a secret has the form of a JWT. */
export const isJwt = (secret: Redacted.Redacted): boolean =>
  /^eyJ[\w-]*\.[\w-]*\.[\w-]*$/.test(Redacted.value(secret))

/** The subject of a JWT, without verification. */
export const subjectOf = (secret: Redacted.Redacted): string | undefined =>
  Option.getOrUndefined(Option.map(claimsOf(Redacted.value(secret)), ({ sub }) => sub))

const claimsOf = Option.liftThrowable(decodeJwt)

const publicAlgorithms = [
  ...["RS", "PS", "ES"].flatMap((family) => ["256", "384", "512"].map((bits) => family + bits)),
  "EdDSA",
  "Ed25519"
]

/** The name of the server's own admin, which an issuer cannot use. */
const reserved = "admin"

/** The format of a member's id. */
const isSubject = Schema.is(
  UserId.check(Schema.isPattern(/^[^\s\p{Cc}\p{Cf}](?:[^\p{Cc}\p{Cf}]*[^\s\p{Cc}\p{Cf}])?$/u))
)

/** The latest instant that a row can store; a JWT may carry a later one. */
const latestSeconds = 253_402_300_799

const makeIssuer = (keys: JwtKeys, terms: JwtTerms): Issuer => {
  const verified = (jwt: string, key: Parameters<typeof jwtVerify>[1] | JWTVerifyGetKey) =>
    Effect.flatMap(Clock.currentTimeMillis, (now) =>
      Effect.tryPromise({
        try: () =>
          jwtVerify(jwt, key as JWTVerifyGetKey, {
            issuer: terms.issuer,
            audience: terms.audience,
            algorithms: keys.kind === "secret" ? ["HS256"] : publicAlgorithms,
            clockTolerance: tokenLimits.jwtSkewSeconds,
            requiredClaims: ["exp", "sub"],
            currentDate: new Date(now)
          }),
        catch: (error) => error
      })
    )

  const judge = (jwt: string) => {
    if (keys.kind === "secret") return verified(jwt, Redacted.value(keys.secret))
    if (keys.kind === "publicKey") return verified(jwt, keys.key)
    const withKeys = (found: KeySet["current"]) =>
      Effect.flatMap(found, (find) =>
        find === undefined ? Effect.fail(new errors.JWKSNoMatchingKey()) : verified(jwt, find)
      )
    return Effect.catchIf(
      withKeys(keys.keys.current),
      (error) => error instanceof errors.JWKSNoMatchingKey,
      () => withKeys(keys.keys.renewed)
    )
  }

  return {
    name: terms.issuer,
    verify: Effect.fn("TrustedIssuer.verify")(function* (secret: Redacted.Redacted) {
      const jwt = Redacted.value(secret)
      if (jwt.length > tokenLimits.jwtMaxBytes) return undefined
      const judged = yield* Effect.result(judge(jwt))
      if (judged._tag === "Failure") {
        const { failure } = judged
        yield* Effect.logDebug("A JWT was refused", failure instanceof errors.JOSEError ? failure.code : "")
        return undefined
      }
      return bearerOf(judged.success.payload, terms.adminClaim)
    })
  }
}

const bearerOf = (payload: JWTPayload, adminClaim: JwtTerms["adminClaim"]): Bearer | undefined => {
  const { exp = 0, sub } = payload
  if (!isSubject(sub) || sub === reserved) return undefined
  return {
    userId: sub,
    isServerAdmin: adminClaim !== undefined && says(payload[adminClaim.name], adminClaim.value),
    expiresAt: new Date(Math.min(exp, latestSeconds) * 1_000)
  }
}

/** Whether a claim has a value, alone or in a list. */
const says = (claim: unknown, value: string): boolean =>
  (Array.isArray(claim) ? claim : [claim]).some(
    (one) => ["string", "number", "boolean"].includes(typeof one) && String(one) === value
  )

// The keys of an identity provider, fetched on demand and kept while the provider is away.
//
// An unknown key id triggers one fetch, and then none for a while: strangers must not be able to make this server call another at will. Old
// keys remain valid until there are newer ones.

type Find = ReturnType<typeof createLocalJWKSet>

interface KeySet {
  /** Looks a key up among the cached ones; undefined before the first fetch. */
  readonly current: Effect.Effect<Find | undefined>
  /** The same after another fetch, unless one was made a moment ago. */
  readonly renewed: Effect.Effect<Find | undefined>
}

interface Known {
  readonly find: Find | undefined
  readonly fetchedAt: number
  readonly askedAt: number
}

/** The provider did not return keys. Its answer is not shown. */
class KeysMissing extends Schema.TaggedError<KeysMissing>()("KeysMissing", { because: Schema.String }) {}

/** The keys at an address, until the scope ends. */
const makeKeySet = Effect.fn("makeKeySet")(function* (
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
    // A published symmetric key is not secret.
    const open = keys.keys.filter(({ kty }) => kty !== "oct")
    return createLocalJWKSet({ keys: open })
  }).pipe(
    Effect.provideService(FetchHttpClient.RequestInit, { redirect: "error" }),
    Effect.catchTag("HttpClientError", ({ reason }) => Effect.fail(new KeysMissing({ because: reason._tag })))
  )

// Reads the JWT settings from the environment: the issuer and its key.
//
// Half a configuration would admit no one or anyone, so the start fails with a sentence. The sentence quotes no value, because one of them
// is a secret.

const sources = ["TROPISM_JWT_JWKS_URL", "TROPISM_JWT_SECRET", "TROPISM_JWT_PUBLIC_KEY"] as const
const terms = ["TROPISM_JWT_ISSUER", "TROPISM_JWT_AUDIENCE"] as const

const valueOf = (name: string) =>
  Effect.map(
    Effect.orElseSucceed(Config.option(Config.Redacted(name)), () => Option.none()),
    (found) => Redacted.value(Option.getOrElse(found, () => Redacted.make(""))).trim()
  )

/** The configured issuer; undefined where there is none; fails with a sentence about the wrong setting. */
export const issuerOfEnvironment = Effect.gen(function* () {
  const given = yield* Effect.filter(sources, (name) => Effect.map(valueOf(name), (value) => value !== ""))
  const [source, other] = given
  const issuer = yield* valueOf(terms[0])
  const audience = yield* valueOf(terms[1])
  const claim = yield* valueOf("TROPISM_JWT_ADMIN_CLAIM")
  if (source === undefined) {
    return issuer + audience + claim === ""
      ? undefined
      : yield* Effect.fail(
          `JWTs need a key to be verified with: set ${sources.join(" or ")}, or leave out ${terms.join(", ")} and TROPISM_JWT_ADMIN_CLAIM.`
        )
  }
  if (other !== undefined)
    return yield* Effect.fail(`${source} and ${other} are both set: leave the one that is meant.`)
  if (issuer === "" || audience === "")
    return yield* Effect.fail(
      `${source} needs ${terms.join(" and ")}: set them to the iss and aud of your provider's JWTs, so that JWTs for others let nobody in here.`
    )
  const adminClaim = yield* adminClaimOf(claim)
  return makeIssuer(yield* keysOf(source, yield* valueOf(source)), { issuer, audience, adminClaim })
})

const adminClaimOf = (text: string): Effect.Effect<JwtTerms["adminClaim"], string> => {
  const [, name, value] = /^([^=]+)=(.+)$/s.exec(text) ?? []
  if (text === "") return Effect.undefined
  return name === undefined || value === undefined
    ? Effect.fail(
        "TROPISM_JWT_ADMIN_CLAIM must be name=value, such as role=tropism-admin: the claim that makes somebody an admin of this server."
      )
    : Effect.succeed({ name, value })
}

const keysOf = Effect.fnUntraced(function* (source: (typeof sources)[number], value: string) {
  switch (source) {
    case "TROPISM_JWT_SECRET": {
      const secret = new TextEncoder().encode(value)
      if (secret.byteLength < tokenLimits.jwtSecretMinBytes)
        return yield* Effect.fail(
          `TROPISM_JWT_SECRET must have ${tokenLimits.jwtSecretMinBytes} bytes or more: whoever guesses it can be anybody. Make one with "openssl rand -hex 32".`
        )
      return { kind: "secret" as const, secret: Redacted.make(secret) }
    }
    case "TROPISM_JWT_PUBLIC_KEY": {
      const key = publicKeyOf(value)
      if (key === undefined)
        return yield* Effect.fail(
          `TROPISM_JWT_PUBLIC_KEY must be a public key in PEM ("-----BEGIN PUBLIC KEY-----"): RSA of ${tokenLimits.jwtRsaKeyMinBits} bits or more, P-256, P-384, P-521 or Ed25519. The private key stays with whoever signs.`
        )
      return { kind: "publicKey" as const, key }
    }
    case "TROPISM_JWT_JWKS_URL": {
      const url = URL.parse(value)
      if (url === null || !mayAsk(url))
        return yield* Effect.fail(
          "TROPISM_JWT_JWKS_URL must be the https address of your provider's keys, such as https://id.example/.well-known/jwks.json, with no user name in it; http is for this machine alone."
        )
      return { kind: "keySet" as const, keys: yield* makeKeySet(url) }
    }
  }
})

/** Without https somebody on the network could substitute keys, except on this machine. */
const mayAsk = ({ hostname, password, protocol, username }: URL): boolean =>
  username + password === "" && (protocol === "https:" || (protocol === "http:" && isLocal(hostname)))

const publicKeyOf = (pem: string): KeyObject | undefined => {
  const text = pem.replaceAll("\\n", "\n")
  if (!text.includes("PUBLIC KEY")) return undefined
  const key = parsed(text)
  const { modulusLength = 0, namedCurve = "" } = key?.asymmetricKeyDetails ?? {}
  const isGood =
    key?.asymmetricKeyType === "rsa"
      ? modulusLength >= tokenLimits.jwtRsaKeyMinBits
      : key?.asymmetricKeyType === "ed25519" || ["prime256v1", "secp384r1", "secp521r1"].includes(namedCurve)
  return isGood ? key : undefined
}

const parsed = (pem: string): KeyObject | undefined =>
  Option.getOrUndefined(Option.liftThrowable(createPublicKey)(pem))
