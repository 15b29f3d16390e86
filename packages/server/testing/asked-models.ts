/** Asks models of servers that answer as a test says, over a real socket. */
import type { ModelConfig } from "@tropism/domain/model-config"
import { Clock, Effect, Stream } from "effect"
import {
  type ModelFailure,
  type ModelPart,
  type ModelRequest,
  ModelUnavailable
} from "../src/models/model-request.ts"
import { Models } from "../src/models/models.ts"
import { makeFakeClock } from "./fake-clock.ts"
import { type FakeAnswer, type FakeModelServer, serveAnswers } from "./fake-model-server.ts"
import { asking, modelsIn, textOf } from "./models.ts"
import type { WireFormat } from "./providers/wire-format.ts"

export const hostedKey = "secret-key-abcdef-0123456789"

export type Answers = readonly [FakeAnswer, ...ReadonlyArray<FakeAnswer>]

/** Asks a server several times, and returns what came of each request and which bodies were sent. */
export const askAt = (
  format: WireFormat,
  answers: Answers,
  more: Partial<ModelConfig> = {},
  ...requests: ReadonlyArray<ModelRequest>
) =>
  Effect.gen(function* () {
    const server = yield* serveAnswers(...answers)
    const { clock, pausesMs } = makeFakeClock(1_000)
    const outcomes = yield* Effect.forEach(requests.length === 0 ? [asking("hi")] : requests, (request) =>
      Effect.gen(function* () {
        const parts: Array<ModelPart> = []
        const resolved = yield* (yield* Models).resolve({
          agentName: "tester",
          model: { ...format.model, ...more }
        })
        const failure: ModelFailure | ModelUnavailable | null = yield* Stream.runForEach(
          resolved.request(request),
          (part) => Effect.sync(() => parts.push(part))
        ).pipe(
          Effect.as(null),
          Effect.catch((error) => Effect.succeed(error))
        )
        return { parts, failure }
      })
    ).pipe(
      Effect.provide(modelsIn(format.env(server.url, hostedKey))),
      Effect.provideService(Clock.Clock, clock),
      Effect.orDie
    )
    const [first] = outcomes
    return {
      parts: first?.parts ?? [],
      failure: first?.failure ?? null,
      texts: outcomes.map(({ parts }) => textOf(parts)),
      bodies: server.requests.map(({ body }) => Object(body)),
      requests: server.requests,
      pausesMs,
      url: server.url
    }
  }).pipe(Effect.scoped)

export const localModel: ModelConfig = {
  provider: "openai-compatible",
  name: "m",
  temperature: 0.5,
  maxOutputTokens: 99
}
export const localKey = "local-secret-0123456789"
export const envOf = (server: FakeModelServer) => ({
  OPENAI_COMPATIBLE_BASE_URL: `${server.url}/v1`,
  OPENAI_COMPATIBLE_API_KEY: localKey
})

export interface Outcome {
  readonly parts: ReadonlyArray<ModelPart>
  readonly failure: ModelFailure | ModelUnavailable | null
  readonly pausesMs: ReadonlyArray<number>
  readonly server: FakeModelServer
}

/** Asks a server that gives these answers; parts are kept also where the request fails, and an answer that hangs is torn at its first part. */
export const askServer = (
  answers: readonly [FakeAnswer, ...ReadonlyArray<FakeAnswer>],
  request: ModelRequest = asking("hi"),
  config: ModelConfig = localModel
): Effect.Effect<Outcome> =>
  Effect.gen(function* () {
    const server = yield* serveAnswers(...answers)
    const { clock, pausesMs } = makeFakeClock(1_000)
    const parts: Array<ModelPart> = []
    const failure = yield* Effect.gen(function* () {
      const resolved = yield* (yield* Models).resolve({ agentName: "tester", model: config })
      yield* Stream.runForEach(resolved.request(request), (part) =>
        Effect.andThen(
          Effect.sync(() => parts.push(part)),
          server.breakOff
        )
      )
      return null
    }).pipe(
      Effect.catch((error) => Effect.succeed(error)),
      Effect.provideService(Clock.Clock, clock),
      Effect.provide(modelsIn(envOf(server))),
      Effect.orDie
    )
    return { parts, failure, pausesMs, server }
  }).pipe(Effect.scoped)
