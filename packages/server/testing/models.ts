/**
 * For tests: the real `Models` over an environment that the test writes.
 *
 * Nothing of the machine's own environment is seen, so no test finds a key that
 * happens to be set there.
 */
import * as NodeServices from "@effect/platform-node/NodeServices"
import type { ModelConfig } from "@tropism/domain/model-config"
import { ConfigProvider, Effect, Layer, Stream } from "effect"
import {
  type ModelFailure,
  type ModelPart,
  type ModelRequest,
  ModelUnavailable
} from "../src/models/model-request.ts"
import { Models } from "../src/models/models.ts"

/** `Models` on a server with the given environment variables. */
export const modelsIn = (env: Record<string, string>) =>
  Models.layer.pipe(
    Layer.provide(ConfigProvider.layer(ConfigProvider.fromEnv({ env }))),
    Layer.provide(NodeServices.layer)
  )

/** A request with one message of the user. */
export const asking = (message: string, request: Partial<ModelRequest> = {}): ModelRequest => ({
  messages: [{ role: "user", content: message }],
  tools: [],
  ...request
})

/** Asks the model of a config and gathers the parts. */
export const ask = (
  model: ModelConfig,
  request: ModelRequest
): Effect.Effect<ReadonlyArray<ModelPart>, ModelFailure | ModelUnavailable, Models> =>
  Effect.gen(function* () {
    const resolved = yield* (yield* Models).resolve({ agentName: "tester", model })
    return yield* Stream.runCollect(resolved.request(request))
  })

/** The text of an answer. */
export const textOf = (parts: ReadonlyArray<ModelPart>): string =>
  parts.map((part) => (part.type === "text" ? part.delta : "")).join("")
