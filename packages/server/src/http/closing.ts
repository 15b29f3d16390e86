/**
 * Tells streams that have no end of their own that the server is about to stop.
 *
 * Flow: **http** → graph → outbox → dispatch → run → tool → task
 *
 * A server that stops waits for the requests under way. A stream would keep it
 * waiting for nothing, so it ends at once, and its client comes back elsewhere.
 * Who waits for an answer that is still being made may wait until a moment before
 * the doors close for good, and is then told where it goes on.
 */
import { Unavailable } from "@tropism/api/problems"
import { Context, Deferred, Effect, Layer } from "effect"
import { HttpServerRespondable, HttpServerResponse } from "effect/http"
import { httpLimits } from "../limits.ts"
import { edgeLimits } from "./edge-limits.ts"

export class Closing extends Context.Service<
  Closing,
  {
    /** Done as soon as the server stops. */
    readonly begun: Effect.Effect<void>
    /** Says that the server stops. */
    readonly begin: Effect.Effect<void>
    /** Done a moment before requests under way are cut off. */
    readonly lastCall: Effect.Effect<void>
    /** Says that from now on requests under way have the time that they may take to end. */
    readonly drain: Effect.Effect<void>
  }
>()("@tropism/server/http/Closing") {
  static readonly layer = Layer.effect(
    Closing,
    Effect.gen(function* () {
      const scope = yield* Effect.scope
      const stopping = yield* Deferred.make<void>()
      const called = yield* Deferred.make<void>()
      const call = Effect.andThen(
        Effect.sleep(httpLimits.drainTimeoutMs - edgeLimits.lastWordMs),
        Deferred.succeed(called, undefined)
      )
      return Closing.of({
        begun: Deferred.await(stopping),
        begin: Effect.asVoid(Deferred.succeed(stopping, undefined)),
        lastCall: Deferred.await(called),
        // No request waits for it: the server is gone as soon as the last of them is answered.
        drain: Effect.asVoid(Effect.forkIn(call, scope))
      })
    })
  )
}

/** What is told where a server stops before the answer is there. */
export const stopsWith = (detail: string): Unavailable => new Unavailable({ detail })

/** The same as an answer, with the time after which another server may be asked. */
export const stoppedResponse = (detail: string): Effect.Effect<HttpServerResponse.HttpServerResponse> =>
  Effect.map(HttpServerRespondable.toResponse(stopsWith(detail)), comeAgain)

/** Says when to come again. */
export const comeAgain = HttpServerResponse.setHeader("retry-after", "1")
