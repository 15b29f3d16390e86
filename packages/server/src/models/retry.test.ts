/** How patiently a model is asked when somebody has set it. */
import { expect, it } from "@effect/vitest"
import { emptyConfig } from "@tropism/domain/context-config"
import { Clock, Effect, Option, Stream } from "effect"
import { makeFakeClock } from "../../testing/fake-clock.ts"
import { type FakeAnswer, serveAnswers } from "../../testing/fake-model-server.ts"
import { asking, modelsIn } from "../../testing/models.ts"
import { Models } from "./models.ts"

const refusing = (status: number, headers: Record<string, string> = {}): FakeAnswer => ({
  kind: "json",
  status,
  body: { error: { message: "Not now", type: "server_error" } },
  headers
})

const retry = { maxRetries: 4, baseMs: 1_000, factor: 3, maxMs: 5_000 }

/** The pauses between the tries of a model that never answers. */
const pausesOf = (...answers: readonly [FakeAnswer, ...ReadonlyArray<FakeAnswer>]) =>
  Effect.gen(function* () {
    const { requests, url } = yield* serveAnswers(...answers)
    const { clock, pausesMs } = makeFakeClock()
    const failure = yield* Effect.gen(function* () {
      const resolved = yield* (yield* Models).resolve({
        agentName: "tester",
        model: { provider: "openai-compatible", name: "m" },
        settings: { ...emptyConfig, retry: Option.some(retry) }
      })
      return yield* Effect.flip(Stream.runDrain(resolved.request(asking("Hello?"))))
    }).pipe(
      Effect.provide(modelsIn({ OPENAI_COMPATIBLE_BASE_URL: `${url}/v1` })),
      Effect.provideService(Clock.Clock, clock)
    )
    expect(failure.message).toContain("Not now")
    return { pausesMs, requests }
  }).pipe(Effect.scoped)

it.live("S004-F01 pauses grow by the factor that was set, up to the bound that was set", () =>
  Effect.gen(function* () {
    const { pausesMs, requests } = yield* pausesOf(refusing(503))
    expect(requests).toHaveLength(5)
    expect(pausesMs).toHaveLength(4)
    for (const [index, [least, most]] of [
      [800, 1_200],
      [2_400, 3_600],
      [5_000, 5_000],
      [5_000, 5_000]
    ].entries()) {
      expect(pausesMs[index]).toBeGreaterThanOrEqual(least ?? 0)
      expect(pausesMs[index]).toBeLessThanOrEqual(most ?? 0)
    }
  })
)

it.live("S004-F01 a pause that the server asks for is kept, though it is longer than what was set", () =>
  Effect.gen(function* () {
    const { pausesMs } = yield* pausesOf(refusing(429, { "retry-after": "7" }))
    expect(pausesMs).toEqual([7_000, 7_000, 7_000, 7_000])
  })
)
