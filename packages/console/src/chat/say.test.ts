/**
 * What is said is said again after a cut, but not for ever: a server that never answers is told of.
 */
import { describe, expect, it } from "@effect/vitest"
import { Effect, Exit, Fiber, Queue } from "effect"
import { TestClock } from "effect/testing"
import { limits } from "../limits.ts"
import { isLeftOpen } from "../server/problem.ts"
import { say, type SayingListener } from "./say.ts"

/** Says something where no server is, each pause as soon as it begins; answers how often it was tried, and what came of it. */
const saidInVain = Effect.gen(function* () {
  const losses = yield* Queue.unbounded<void>()
  let tries = 0
  const listener: SayingListener = {
    onBegun: () => {},
    onWords: () => {},
    onCall: () => {},
    onLost: () => {
      tries += 1
      Queue.offerUnsafe(losses, undefined)
    }
  }
  // An address without a server is none for whoever stands in no page.
  const saying = yield* Effect.forkChild(
    Effect.flip(say("p", { key: "k", message: "Buy bread" }, listener)).pipe(
      Effect.ensuring(Queue.offer(losses, undefined))
    )
  )
  while (saying.pollUnsafe() === undefined && tries <= limits.maxChatTries) {
    yield* Queue.take(losses)
    yield* TestClock.adjust(limits.maxChatRetryMs)
  }
  yield* Fiber.interrupt(saying)
  return { tries, error: yield* Fiber.await(saying) }
})

describe("what is said where nobody answers", () => {
  it.effect("is left after many tries, and it is not known whether it was heard", () =>
    Effect.gen(function* () {
      const { error, tries } = yield* saidInVain
      expect(tries).toBe(limits.maxChatTries)
      expect(Exit.isSuccess(error) && isLeftOpen(error.value)).toBe(true)
    })
  )
})
