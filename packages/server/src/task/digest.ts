/**
 * The fingerprint that binds a decision to what the person saw.
 *
 * Flow: graph → outbox → dispatch → run → tool → **task**
 */
import { Effect } from "effect"

/** SHA-256 of a text, hexadecimal. */
export const digestOf = (text: string): Effect.Effect<string> =>
  Effect.map(
    Effect.promise(() => crypto.subtle.digest("SHA-256", new TextEncoder().encode(text))),
    (bytes) => Buffer.from(bytes).toString("hex")
  )
