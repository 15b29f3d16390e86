/** Every format that providers speak, over a real socket, when things go wrong. */
import { describe, expect, it } from "@effect/vitest"
import type { ModelConfig } from "@tropism/domain/model-config"
import { Clock, Deferred, Effect, Exit, Fiber, Stream } from "effect"
import { TestClock } from "effect/testing"
import { makeFakeClock } from "../../testing/fake-clock.ts"
import {
  type FakeAnswer,
  type FakeModelServer,
  serveAnswers,
  streaming
} from "../../testing/fake-model-server.ts"
import { modelsIn, textOf } from "../../testing/models.ts"
import { naming } from "../../testing/naming.ts"
import { formats } from "../../testing/providers/formats.ts"
import { gemini, geminiLimitByMinute } from "../../testing/providers/gemini.ts"
import { openaiChat } from "../../testing/providers/openai-chat.ts"
import { openaiResponses } from "../../testing/providers/openai-responses.ts"
import { conversation, type Piece, type WireFormat } from "../../testing/providers/wire-format.ts"
import { modelLimits } from "../limits.ts"
import { type ModelFailure, type ModelPart, ModelUnavailable, type ModelRequest } from "./model-request.ts"
import { Models } from "./models.ts"

const key = "secret-key-abcdef-0123456789"
const attempts = modelLimits.maxRetries + 1

/** Answers that nobody may be handed over to by mistake: it would be seen. */
const fallback: ModelConfig["fallback"] = { provider: "scripted", name: "daily-digest" }

/** Asks a server, and keeps the parts also where the request fails. */
const gather = (
  format: WireFormat,
  server: FakeModelServer,
  more: Partial<ModelConfig> = {},
  request: ModelRequest = conversation
) =>
  Effect.gen(function* () {
    const parts: Array<ModelPart> = []
    const failure: ModelFailure | ModelUnavailable | null = yield* Effect.gen(function* () {
      const resolved = yield* (yield* Models).resolve({
        agentName: "tester",
        model: { ...format.model, ...more }
      })
      yield* Stream.runForEach(resolved.request(request), (part) => Effect.sync(() => parts.push(part)))
      return null
    }).pipe(
      Effect.catch((error) => Effect.succeed(error)),
      Effect.provide(modelsIn(format.env(server.url, key))),
      Effect.orDie
    )
    return { parts, failure }
  })

/** What comes of a server that gives these answers, where every pause takes no time and is written down. */
const outcomeOf = (
  format: WireFormat,
  answers: readonly [FakeAnswer, ...ReadonlyArray<FakeAnswer>],
  more: Partial<ModelConfig> = {}
) =>
  Effect.gen(function* () {
    const server = yield* serveAnswers(...answers)
    const { clock, pausesMs } = makeFakeClock(1_000)
    const outcome = yield* Effect.provideService(gather(format, server, more), Clock.Clock, clock)
    return { ...outcome, pausesMs, requests: server.requests.length }
  }).pipe(Effect.scoped)

for (const format of formats) {
  const good = streaming(format.answer({ words: ["Hello"] }))
  const refused = (status: number, headers: Record<string, string> = {}): FakeAnswer => ({
    kind: "json",
    status,
    body: format.refusal(status, "not now"),
    headers
  })

  describe(`${format.title}, when things go wrong before any word`, () => {
    it.live("a server that fails is asked again, a bounded number of times", () =>
      Effect.gen(function* () {
        const recovered = yield* outcomeOf(format, [refused(500), refused(503), good])
        expect([textOf(recovered.parts), recovered.requests]).toEqual(["Hello", 3])
        const down = yield* outcomeOf(format, [refused(503)])
        expect(down.failure).toMatchObject({
          reason: "unavailable",
          message: "HTTP 503: not now",
          outputBegan: false
        })
        expect([down.parts, down.requests]).toEqual([[], attempts])
      })
    )

    it.live("a server that stays down hands over to the fallback", () =>
      Effect.gen(function* () {
        const { parts, requests } = yield* outcomeOf(format, [refused(500)], { fallback })
        expect(requests).toBe(attempts)
        expect(parts.at(-1)).toMatchObject({ type: "finish", provider: "scripted", costMicros: 0 })
      })
    )

    it.live("too many requests wait as long as the server asks, in each way of asking", () =>
      Effect.gen(function* () {
        const { parts, pausesMs } = yield* outcomeOf(format, [
          refused(429, { "retry-after": "7" }),
          refused(429, { "retry-after": "Thu, 01 Jan 1970 00:00:10 GMT" }),
          refused(429, { "retry-after-ms": "4321" }),
          good
        ])
        expect(textOf(parts)).toBe("Hello")
        // The clock stands at 1 s, so the date asks for 9 s more.
        expect(pausesMs).toEqual([7_000, 9_000, 4_321])
      })
    )

    it.live("a request that the server refuses is not made again", () =>
      Effect.gen(function* () {
        for (const [status, reason] of [
          [400, "refused"],
          [401, "authentication"],
          [403, "authentication"],
          [404, "refused"]
        ] as const) {
          const { failure, requests } = yield* outcomeOf(format, [refused(status), good])
          expect(failure).toMatchObject({ reason, message: `HTTP ${status}: not now` })
          expect(requests).toBe(1)
        }
      })
    )

    it.live("an error inside a stream that began well is an error all the same", () =>
      Effect.gen(function* () {
        const broken = streaming(format.streamedError("overloaded"))
        const { parts, requests } = yield* outcomeOf(format, [broken, broken, good])
        expect([textOf(parts), requests]).toEqual(["Hello", 3])
        const { failure } = yield* outcomeOf(format, [broken])
        expect(failure).toMatchObject({
          reason: "unavailable",
          message: expect.stringContaining("overloaded")
        })
      })
    )

    it.live("a call that is cut in its arguments was not made, and is asked for again", () =>
      Effect.gen(function* () {
        const cut = streaming(
          format.cutInArguments({ id: "call_1", name: "get_weather", pieces: ['{"location": "Pa'] })
        )
        const { parts, requests } = yield* outcomeOf(format, [cut, good])
        expect(parts.map((part) => part.type)).toEqual(["text", "finish"])
        expect(requests).toBe(2)
      })
    )

    if (format.withholds !== false)
      it.live("an answer that is withheld whole is a filtered one, not an empty answer", () =>
        Effect.gen(function* () {
          const withheld = streaming(format.answer({ stop: "filter" }))
          const { failure, parts, requests } = yield* outcomeOf(format, [withheld, good])
          expect(failure).toMatchObject({ reason: "filtered", isRetryable: false })
          expect([parts, requests]).toEqual([[], 1])
        })
      )

    it.live("an answer without a body, or with none that ends, is asked for again", () =>
      Effect.gen(function* () {
        const { parts, requests } = yield* outcomeOf(format, [streaming([]), streaming(format.begin()), good])
        expect([textOf(parts), requests]).toEqual(["Hello", 3])
      })
    )

    it.live("the connection is closed when nobody waits any more", () =>
      hangsUp(format, { kind: "silence" }, (server) => server.asked)
    )

    it.effect("silence ends in time: the connection is closed, and another attempt is made", () =>
      Effect.gen(function* () {
        const server = yield* serveAnswers({ kind: "silence" }, good)
        const asking = yield* Effect.forkChild(gather(format, server))
        yield* Deferred.await(server.asked)
        yield* TestClock.adjust(modelLimits.firstPieceTimeoutMs - 1)
        expect(yield* Deferred.isDone(server.hungUp)).toBe(false)
        yield* TestClock.adjust(1)
        yield* Deferred.await(server.hungUp)
        yield* TestClock.adjust(modelLimits.retryMaxMs)
        expect(textOf((yield* Fiber.join(asking)).parts)).toBe("Hello")
        expect(server.requests).toHaveLength(2)
      }).pipe(Effect.scoped)
    )

    it.effect("a definition's pause counts twice before the first word", () =>
      Effect.gen(function* () {
        const server = yield* serveAnswers({ kind: "silence" }, good)
        const asking = yield* Effect.forkChild(gather(format, server, { silenceTimeoutMs: 2_000 }))
        yield* Deferred.await(server.asked)
        yield* TestClock.adjust(3_999)
        expect(yield* Deferred.isDone(server.hungUp)).toBe(false)
        yield* TestClock.adjust(1)
        yield* Deferred.await(server.hungUp)
        yield* TestClock.adjust(2 * modelLimits.retryBaseMs)
        expect(textOf((yield* Fiber.join(asking)).parts)).toBe("Hello")
      }).pipe(Effect.scoped)
    )

    it.effect("a first word that takes long is waited for", () =>
      Effect.gen(function* () {
        const server = yield* serveAnswers({
          kind: "stream",
          chunks: format.answer({ words: ["Hello"] }),
          ending: "end",
          isHeldBack: true
        })
        const asking = yield* Effect.forkChild(gather(format, server))
        yield* Deferred.await(server.asked)
        yield* TestClock.adjust(modelLimits.firstPieceTimeoutMs - 1)
        yield* server.letBegin
        expect(textOf((yield* Fiber.join(asking)).parts)).toBe("Hello")
        expect(server.requests).toHaveLength(1)
      }).pipe(Effect.scoped)
    )
  })

  describe(`${format.title}, when things go wrong after the first word`, () => {
    const afterWord = (chunks: ReadonlyArray<Piece>): FakeAnswer =>
      streaming([...format.begin("Hel"), ...chunks])

    it.live("nothing is tried again, neither there nor with the fallback", () =>
      Effect.gen(function* () {
        for (const answer of [afterWord([]), afterWord(format.streamedError("overloaded").slice(-1))]) {
          const { failure, parts, requests } = yield* outcomeOf(format, [answer, good], { fallback })
          expect(parts).toEqual([{ type: "text", delta: "Hel" }])
          expect(failure).toMatchObject({ outputBegan: true, isRetryable: false })
          expect(requests).toBe(1)
        }
      })
    )

    const hanging: FakeAnswer = { kind: "stream", chunks: format.begin("Hel"), ending: "hang" }

    it.live("the connection is closed when nobody waits any more", () =>
      hangsUp(format, hanging, (_server, heard) => heard)
    )

    it.effect("an answer whose words stop coming ends sooner than one that has not begun", () =>
      Effect.gen(function* () {
        for (const [more, silenceMs] of [
          [{}, modelLimits.silenceTimeoutMs],
          [{ silenceTimeoutMs: 3_000 }, 3_000]
        ] as const) {
          const server = yield* serveAnswers(hanging)
          const heard = yield* Deferred.make<void>()
          const asking = yield* Effect.gen(function* () {
            const resolved = yield* (yield* Models).resolve({
              agentName: "tester",
              model: { ...format.model, ...more }
            })
            return yield* Stream.runForEach(resolved.request(conversation), () =>
              Deferred.succeed(heard, undefined)
            )
          }).pipe(Effect.flip, Effect.provide(modelsIn(format.env(server.url, key))), Effect.forkChild)
          yield* Deferred.await(heard)
          yield* TestClock.adjust(silenceMs - 1)
          expect(yield* Deferred.isDone(server.hungUp)).toBe(false)
          // The pause may have begun a moment after the word was heard.
          yield* TestClock.adjust(silenceMs)
          expect(yield* Fiber.join(asking)).toMatchObject({
            reason: "silent",
            message: naming(silenceMs / 1_000),
            outputBegan: true
          })
          yield* Deferred.await(server.hungUp)
        }
      }).pipe(Effect.scoped)
    )

    it.effect("an answer that takes longer than it may is broken off, and the connection is closed", () =>
      Effect.gen(function* () {
        const server = yield* serveAnswers(hanging)
        const heard = yield* Deferred.make<void>()
        const asking = yield* Effect.gen(function* () {
          const resolved = yield* (yield* Models).resolve({ agentName: "tester", model: format.model })
          return yield* Stream.runForEach(resolved.request({ ...conversation, timeoutMs: 2_000 }), () =>
            Deferred.succeed(heard, undefined)
          )
        }).pipe(Effect.flip, Effect.provide(modelsIn(format.env(server.url, key))), Effect.forkChild)
        yield* Deferred.await(heard)
        yield* TestClock.adjust(2_000)
        expect(yield* Fiber.join(asking)).toMatchObject({
          reason: "timeout",
          message: expect.stringMatching(/\b2\b/),
          outputBegan: true
        })
        yield* Deferred.await(server.hungUp)
        expect(server.requests).toHaveLength(1)
      }).pipe(Effect.scoped)
    )
  })
}

describe("an account that is used up", () => {
  const message = "You exceeded your current quota, please check your plan and billing details."

  it.live("is not asked again", () =>
    Effect.gen(function* () {
      const exhausted: FakeAnswer = {
        kind: "json",
        status: 429,
        body: { error: { message, type: "insufficient_quota", param: null, code: "insufficient_quota" } }
      }
      const { failure, requests } = yield* outcomeOf(openaiChat, [exhausted])
      expect(failure).toMatchObject({ reason: "quota", message: `HTTP 429: ${message}` })
      expect(requests).toBe(1)
    })
  )

  it.live("is not asked again where it says so inside its stream", () =>
    Effect.gen(function* () {
      const { failure, requests } = yield* outcomeOf(openaiResponses, [streaming(openaiResponses.exhausted)])
      expect(failure).toMatchObject({ reason: "quota", outputBegan: false })
      expect(requests).toBe(1)
    })
  )

  it.live(
    "is another thing than a limit by the minute that is worded like it: that one says when to come back",
    () =>
      Effect.gen(function* () {
        const { parts, pausesMs } = yield* outcomeOf(gemini, [
          { kind: "json", status: 429, body: geminiLimitByMinute },
          streaming(gemini.answer({ words: ["Hello"] }))
        ])
        expect(textOf(parts)).toBe("Hello")
        expect(pausesMs).toEqual([34_400])
      })
  )
})

/** Interrupts whoever asks, at a moment, and waits until the server has seen that nobody is there any more. */
const hangsUp = (
  format: WireFormat,
  answer: FakeAnswer,
  isTime: (server: FakeModelServer, heard: Deferred.Deferred<void>) => Deferred.Deferred<void>
) =>
  Effect.gen(function* () {
    const server = yield* serveAnswers(answer)
    const heard = yield* Deferred.make<void>()
    const asking = yield* Effect.gen(function* () {
      const resolved = yield* (yield* Models).resolve({ agentName: "tester", model: format.model })
      yield* Stream.runForEach(resolved.request(conversation), () => Deferred.succeed(heard, undefined))
    }).pipe(Effect.provide(modelsIn(format.env(server.url, key))), Effect.forkChild)
    yield* Deferred.await(isTime(server, heard))
    yield* Fiber.interrupt(asking)
    yield* Deferred.await(server.hungUp)
    expect(Exit.hasInterrupts(yield* Fiber.await(asking))).toBe(true)
    expect(server.requests).toHaveLength(1)
  }).pipe(Effect.scoped)
