/**
 * Tells streams that have no end of their own that the server is about to stop.
 *
 * Flow: **http** → graph → outbox → dispatch → run → tool → task
 *
 * A server that stops waits for the requests under way. A stream would keep it
 * waiting for nothing, so it ends at once, and its client comes back elsewhere.
 */
import { Context, Deferred, Effect, Layer } from "effect"

export class Closing extends Context.Service<
  Closing,
  {
    /** Done as soon as the server stops. */
    readonly begun: Effect.Effect<void>
    /** Says that the server stops. */
    readonly begin: Effect.Effect<void>
  }
>()("@tropism/server/http/Closing") {
  static readonly layer = Layer.effect(
    Closing,
    Effect.map(Deferred.make<void>(), (stopping) => ({
      begun: Deferred.await(stopping),
      begin: Effect.asVoid(Deferred.succeed(stopping, undefined))
    }))
  )
}
