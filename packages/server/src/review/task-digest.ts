/**
 * The fingerprint that binds a decision to what the person saw.
 *
 * Computed on the spot and not by a promise of the platform: it is asked for
 * inside a transaction, which should wait for nothing but its own statements.
 */
import { createHash } from "node:crypto"
import { Effect } from "effect"

/** SHA-256 of a text, hexadecimal. */
export const digestOf = (text: string): Effect.Effect<string> =>
  Effect.sync(() => createHash("sha256").update(text, "utf8").digest("hex"))
