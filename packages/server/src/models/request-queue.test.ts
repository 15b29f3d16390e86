/** How many requests of a model are open at once, and whose turn is next. */
import { expect, it } from "@effect/vitest"
import { Deferred, Effect, Fiber, Layer, Stream } from "effect"
import { TestClock } from "effect/testing"
import { chatChunk, chatEnd, events, serveAnswers } from "../../testing/fake-model-server.ts"
import { ask, asking, modelsIn, textOf } from "../../testing/models.ts"
import { ModelFailure, type ModelFailureReason, type ModelPart } from "./model-request.ts"
import { CurrentAsker, makeRequestQueue, ModelConcurrency } from "./request-queue.ts"

const refusal = (reason: ModelFailureReason) =>
  new ModelFailure({
    provider: "openai",
    model: "m",
    reason,
    message: "Refused",
    outputBegan: false,
    isRetryable: true,
    retryAfterMs: null
  })

/** A queue with so many places, and requests that a test answers one by one. */
const queueOf = (most: number) =>
  Effect.gen(function* () {
    const { inTurn, states } = yield* Effect.provideService(makeRequestQueue, ModelConcurrency, most)
    const sent: Array<string> = []
    const answers = new Map<string, Deferred.Deferred<void, ModelFailure>>()
    const request = Effect.fnUntraced(function* (
      projectId: string,
      agentId = projectId,
      maxConcurrency: number | null = null
    ) {
      const label = `${agentId}${[...answers.keys()].filter((key) => key.startsWith(agentId)).length + 1}`
      const answer = yield* Deferred.make<void, ModelFailure>()
      answers.set(label, answer)
      const parts: Stream.Stream<ModelPart, ModelFailure> = Stream.unwrap(
        Effect.suspend(() => {
          sent.push(label)
          return Effect.as(Deferred.await(answer), Stream.empty)
        })
      )
      const fiber = yield* Stream.runDrain(
        inTurn({ provider: "openai", name: "m", maxConcurrency }, parts)
      ).pipe(
        Effect.exit,
        Effect.provideService(CurrentAsker, { projectId, agentId }),
        Effect.forkChild({ startImmediately: true })
      )
      yield* settle
      return fiber
    })
    const end = (label: string, reason?: ModelFailureReason) => {
      const answer = answers.get(label)
      if (answer === undefined) throw new Error(`There is no request ${label}`)
      return Effect.andThen(
        reason === undefined ? Deferred.succeed(answer, undefined) : Deferred.fail(answer, refusal(reason)),
        settle
      )
    }
    const limit = () => states()[0]?.limit
    return { end, limit, request, sent, states }
  })

const settle = Effect.forEach(Array.from({ length: 50 }), () => Effect.yieldNow, { discard: true })

it.effect("projects take turns, and within a project its agents", () =>
  Effect.gen(function* () {
    const { end, request, sent } = yield* queueOf(1)
    for (const [project, agent] of [
      ["a", "a"],
      ["a", "a"],
      ["a", "a"],
      ["a", "x"],
      ["b", "b"],
      ["b", "b"]
    ] as const)
      yield* request(project, agent)
    for (const label of ["a1", "a2", "b1", "x1", "b2", "a3"]) yield* end(label)
    expect(sent).toEqual(["a1", "a2", "b1", "x1", "b2", "a3"])
  })
)

it.effect("an agent's own limit keeps none of the others waiting", () =>
  Effect.gen(function* () {
    const { end, request, sent } = yield* queueOf(3)
    yield* request("a", "a", 1)
    yield* request("a", "a", 1)
    yield* request("a", "b")
    expect(sent).toEqual(["a1", "b1"])
    yield* end("a1")
    expect(sent).toEqual(["a1", "b1", "a2"])
  })
)

it.effect("a request that is interrupted leaves the queue, and one that was sent leaves its place", () =>
  Effect.gen(function* () {
    const { request, sent, states } = yield* queueOf(1)
    const first = yield* request("a")
    const second = yield* request("b")
    yield* request("c")
    yield* Fiber.interrupt(second)
    expect(states()).toMatchObject([{ inFlight: 1, waiting: 1 }])
    yield* Fiber.interrupt(first)
    yield* settle
    expect(sent).toEqual(["a1", "c1"])
  })
)

it.effect("429 halves the limit once for all that were open together, and never below 1", () =>
  Effect.gen(function* () {
    const { end, limit, request } = yield* queueOf(8)
    for (let count = 0; count < 5; count += 1) yield* request("a")
    yield* end("a1", "rateLimited")
    yield* end("a2", "rateLimited")
    expect(limit()).toBe(4)
    yield* end("a3", "unavailable")
    expect(limit()).toBe(4)
    for (const [index, expected] of [2, 1, 1].entries()) {
      yield* end("a4")
      yield* end("a5")
      yield* request("b")
      yield* end(`b${index + 1}`, "rateLimited")
      yield* request("c")
      expect(limit()).toBe(expected)
      yield* end(`c${index + 1}`)
    }
  })
)

it.effect("the limit grows back by one after eight answers, and each minute", () =>
  Effect.gen(function* () {
    const { end, limit, request, sent, states } = yield* queueOf(4)
    yield* request("a")
    yield* end("a1", "rateLimited")
    expect(limit()).toBe(2)
    for (let count = 1; count <= 8; count += 1) {
      yield* request("b")
      yield* end(`b${count}`)
    }
    expect(limit()).toBe(3)
    for (let count = 1; count <= 4; count += 1) yield* request("c")
    expect(sent.slice(-3)).toEqual(["c1", "c2", "c3"])
    yield* TestClock.adjust("61 seconds")
    yield* settle
    expect(sent.at(-1)).toBe("c4")
    expect(states()).toMatchObject([{ inFlight: 4, waiting: 0, limit: 4 }])
  })
)

it.live("a retry takes a turn of its own: the failed try holds none", () =>
  Effect.gen(function* () {
    const { requests, url } = yield* serveAnswers(
      { kind: "json", status: 503, body: { error: { message: "Not now", type: "server_error" } } },
      events(chatChunk({ content: "Done." }), ...chatEnd("stop"))
    )
    const models = Layer.provide(
      modelsIn({ OPENAI_COMPATIBLE_BASE_URL: `${url}/v1` }),
      Layer.succeed(ModelConcurrency, 1)
    )
    const parts = yield* Effect.provide(
      ask({ provider: "openai-compatible", name: "m" }, asking("Hello?")),
      models
    )
    expect(textOf(parts)).toBe("Done.")
    expect(requests).toHaveLength(2)
  }).pipe(Effect.scoped)
)
