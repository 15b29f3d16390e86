/**
 * Who a JWT is of, where the operator trusts somebody to sign them.
 *
 * Flow: **http** → graph → outbox → dispatch → run → tool → task
 *
 * A JWT says who somebody is and never what they may do: that is their membership's
 * to say. The one exception is the claim that the operator names for admins of the
 * server. Which algorithms are good follows from the kind of key alone, so nobody
 * can have a public key taken for a secret.
 */
import type { KeyObject } from "node:crypto"
import { UserId } from "@tropism/domain/ids"
import { Clock, Context, Effect, Option, Redacted, Schema } from "effect"
import { decodeJwt, errors, type JWTPayload, type JWTVerifyGetKey, jwtVerify } from "jose"
import type { KeySet } from "./key-set.ts"
import { tokenLimits } from "./token-limits.ts"

/** What a JWT is verified with. */
export type JwtKeys =
  | { readonly kind: "secret"; readonly secret: Redacted.Redacted<Uint8Array> }
  | { readonly kind: "publicKey"; readonly key: KeyObject }
  | { readonly kind: "keySet"; readonly keys: KeySet }

export interface JwtTerms {
  readonly issuer: string
  readonly audience: string
  /** The claim that makes an admin of the server, and its value. */
  readonly adminClaim: { readonly name: string; readonly value: string } | undefined
}

/** Somebody whom the issuer knows. */
export interface Bearer {
  readonly userId: UserId
  readonly isServerAdmin: boolean
  readonly expiresAt: Date
}

export interface Issuer {
  /** As JWTs name it. */
  readonly name: string
  /** Whose JWT this is; undefined when it is not good. */
  readonly verify: (jwt: Redacted.Redacted) => Effect.Effect<Bearer | undefined>
}

/** Whose JWTs let somebody in; undefined where none do. */
export class TrustedIssuer extends Context.Reference<Issuer | undefined>(
  "@tropism/server/http/TrustedIssuer",
  { defaultValue: () => undefined }
) {}

/** Whether a secret has the form of a JWT. */
export const isJwt = (secret: Redacted.Redacted): boolean =>
  /^eyJ[\w-]*\.[\w-]*\.[\w-]*$/.test(Redacted.value(secret))

/** Whom a JWT names, good or not. */
export const subjectOf = (secret: Redacted.Redacted): string | undefined =>
  Option.getOrUndefined(Option.map(claimsOf(Redacted.value(secret)), ({ sub }) => sub))

const claimsOf = Option.liftThrowable(decodeJwt)

const publicAlgorithms = [
  ...["RS", "PS", "ES"].flatMap((family) => ["256", "384", "512"].map((bits) => family + bits)),
  "EdDSA",
  "Ed25519"
]

/** The name of the server's own admin, which no provider gives. */
const reserved = "admin"

/** As a member's id may be. */
const isSubject = Schema.is(
  UserId.check(Schema.isPattern(/^[^\s\p{Cc}\p{Cf}](?:[^\p{Cc}\p{Cf}]*[^\s\p{Cc}\p{Cf}])?$/u))
)

/** The last instant that a row can keep; a JWT may say a later one. */
const latestSeconds = 253_402_300_799

export const makeIssuer = (keys: JwtKeys, terms: JwtTerms): Issuer => {
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
