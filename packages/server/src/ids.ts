/**
 * Creates row ids and secrets.
 *
 * Simulations replace it with ids derived from their seed. Ids are UUIDv7, so they sort by creation within one process; secrets are not ids
 * and come from the system's random source.
 */
import { Context, Effect, Layer } from "effect"
import { v7 } from "uuid"

export class Ids extends Context.Service<
  Ids,
  {
    /** A new UUIDv7. */
    readonly next: Effect.Effect<string>
    /** A new secret: 32 random bytes, hexadecimal. */
    readonly secret: Effect.Effect<string>
  }
>()("@tropism/server/Ids") {
  static readonly layer = Layer.succeed(Ids, {
    next: Effect.sync(() => v7()),
    secret: Effect.sync(() => Buffer.from(crypto.getRandomValues(new Uint8Array(32))).toString("hex"))
  })
}
