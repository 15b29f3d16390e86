/**
 * Who waits for its turn under a key, and goes away; and the most that is kept under one.
 */
import { assert, describe, layer } from "@effect/vitest"
import { UserId } from "@tropism/domain/ids"
import { Deferred, Effect, Fiber, Layer, Queue, Redacted } from "effect"
import { serverSql } from "../../testing/server-sql.ts"
import { KeyNotifications, IdempotencyKeys, keyLimits } from "./idempotency-keys.ts"

const request = {
  key: "k",
  route: "POST /somewhere",
  asked: null,
  holder: { id: "somebody", secret: Redacted.make("secret"), isRenewed: false }
}

// The clock stands still: nobody waits until a time is up.
/** There is one server. */
const nobodyElse = Layer.succeed(KeyNotifications, {
  ring: () => Effect.void,
  listen: () => Queue.sliding<void>(1)
})

layer(IdempotencyKeys.layer.pipe(Layer.provide([serverSql, nobodyElse])))((it) => {
  describe("A turn under a key", () => {
    it.effect("is not waited for by who has gone away, and is there for the next", () =>
      Effect.gen(function* () {
        const { inTurn } = yield* IdempotencyKeys
        const [reached, goOn] = [yield* Deferred.make<void>(), yield* Deferred.make<void>()]
        const held = Effect.andThen(Deferred.succeed(reached, undefined), Deferred.await(goOn))
        const first = yield* Effect.forkScoped(inTurn(request, Effect.as(held, "first")))
        yield* Deferred.await(reached)
        let begun = 0
        const repeat = inTurn(
          request,
          Effect.sync(() => ++begun)
        )
        const gone = yield* Effect.forkScoped(repeat)
        yield* Effect.yieldNow
        yield* Fiber.interrupt(gone)
        const next = yield* Effect.forkScoped(repeat)
        yield* Deferred.succeed(goOn, undefined)
        assert.deepStrictEqual([yield* Fiber.join(first), yield* Fiber.join(next)], ["first", 1])
      })
    )
  })

  describe("What came of a request", () => {
    it.effect("is told again, as large as it may be", () =>
      Effect.gen(function* () {
        const { onceOnServer } = yield* IdempotencyKeys
        const largest = "x".repeat(keyLimits.outcomeMaxBytes - JSON.stringify("").length)
        const large = { ...request, key: "large", by: UserId.make("ada") }
        const first = yield* onceOnServer(large, Effect.succeed(largest))
        const again = yield* onceOnServer(large, Effect.succeed("something else"))
        assert.deepStrictEqual([first.isRepeat, again.isRepeat], [false, true])
        assert.isTrue(again.outcome === largest)
      })
    )
  })
})
