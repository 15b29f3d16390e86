/**
 * Whether a delivery was signed by somebody who has the webhook's token.
 *
 * Flow: graph → outbox → **dispatch** → run → tool → task
 *
 * As Standard Webhooks says: HMAC-SHA256 over `id.timestamp.body`. The key is the
 * SHA-256 of the token, which is all that is kept of it. Comparing takes as long
 * for a signature that is nearly right as for one that is not.
 */
import { createHash, createHmac, timingSafeEqual } from "node:crypto"
import { dispatchLimits } from "../limits.ts"

/** A delivery as it came. */
export interface SignedDelivery {
  readonly id: string
  readonly timestamp: string
  readonly body: Uint8Array
  /** One or more `v1,BASE64`, separated by spaces. */
  readonly signature: string
}

/** Whether one of the signatures was made with one of the keys; keys are hashes of tokens, hexadecimal. */
export const isSignedBy = (delivery: SignedDelivery, keys: ReadonlyArray<string>): boolean => {
  const given = delivery.signature
    .split(" ")
    .filter((signature) => signature.startsWith("v1,"))
    .slice(0, dispatchLimits.webhookSignatures)
    .map((signature) => Buffer.from(signature.slice(3), "base64"))
  const expected = keys.map((key) => signatureOf(delivery, key))
  return given.some((one) =>
    expected.some((right) => one.length === right.length && timingSafeEqual(one, right))
  )
}

/** What a key, hexadecimal, makes of a message. */
export const signatureOf = (
  { body, id, timestamp }: Omit<SignedDelivery, "signature">,
  key: string
): Buffer => createHmac("sha256", Buffer.from(key, "hex")).update(`${id}.${timestamp}.`).update(body).digest()

/** What is kept of a token, and what a sender signs with, hexadecimal. */
export const keyOf = (token: string): string => createHash("sha256").update(token, "utf8").digest("hex")

/** The key in the form that libraries for Standard Webhooks take. */
export const signingSecretOf = (token: string): string =>
  `whsec_${Buffer.from(keyOf(token), "hex").toString("base64")}`
