/**
 * The digest that binds a decision to the text the person saw.
 *
 * Computed synchronously, because it runs inside a transaction, which should wait for its own statements only.
 */
import { createHash } from "node:crypto"
import { Effect } from "effect"

/** Returns the SHA-256 of a text, hexadecimal. */
export const digestOf = (text: string): Effect.Effect<string> =>
  Effect.sync(() => createHash("sha256").update(text, "utf8").digest("hex"))
