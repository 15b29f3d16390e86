/**
 * What the environment says of JWTs: whose are good, and with which key.
 *
 * Flow: **http** → graph → outbox → dispatch → run → tool → task
 *
 * Half a setting lets in nobody or anybody, so it is refused at the start with a
 * sentence. No value is told: one of them is a secret.
 */
import { createPublicKey, type KeyObject } from "node:crypto"
import { Config, Effect, Option, Redacted } from "effect"
import { isLocal } from "./origins.ts"
import { makeKeySet } from "./key-set.ts"
import { tokenLimits } from "./token-limits.ts"
import { makeIssuer, type JwtTerms } from "./trusted-issuer.ts"

const sources = ["TROPISM_JWT_JWKS_URL", "TROPISM_JWT_SECRET", "TROPISM_JWT_PUBLIC_KEY"] as const
const terms = ["TROPISM_JWT_ISSUER", "TROPISM_JWT_AUDIENCE"] as const

const valueOf = (name: string) =>
  Effect.map(
    Effect.orElseSucceed(Config.option(Config.Redacted(name)), () => Option.none()),
    (found) => Redacted.value(Option.getOrElse(found, () => Redacted.make(""))).trim()
  )

/** The issuer whose JWTs are good, undefined where there is none; fails with the sentence that says what is wrong. */
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

/** Whoever stands between could give us keys of their own, but on this machine. */
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
