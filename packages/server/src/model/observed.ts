/**
 * Tells of each try of a model request how it went.
 *
 * Flow: graph → outbox → dispatch → run → **model** → tool → task
 *
 * A try that fails, that is asked again or that is broken off costs time and
 * often money: whoever asks is told of every one of them, in order. Nothing is
 * written here, and the parts pass through as they come.
 */
import { Cause, Clock, Effect, Exit, Option, Stream } from "effect"
import { attempt } from "./attempt.ts"
import type { AskedModel } from "./delivery.ts"
import type { ModelFailure, ModelFinish, ModelPart, ModelRequest, ModelTry } from "./model-request.ts"

/** Asks a model once, and says afterwards how that went. */
export const observed = (
  model: AskedModel,
  request: ModelRequest
): Stream.Stream<ModelPart, ModelFailure> => {
  const { tried } = request
  const parts = attempt(model, request)
  return tried === undefined ? parts : Stream.unwrap(watch(model, request, parts, tried))
}

const watch = Effect.fnUntraced(function* (
  { name, parameters, provider }: AskedModel,
  request: ModelRequest,
  parts: Stream.Stream<ModelPart, ModelFailure>,
  tried: (each: ModelTry) => void
) {
  const clock = yield* Clock.Clock
  const startedAtMs = clock.currentTimeMillisUnsafe()
  let firstOutputMs: number | null = null
  let finish: ModelFinish | null = null
  const note = (part: ModelPart): ModelPart => {
    firstOutputMs ??= clock.currentTimeMillisUnsafe() - startedAtMs
    if (part.type === "finish") finish = part
    return part
  }
  const report = (exit: Exit.Exit<unknown, ModelFailure>) =>
    Effect.sync(() =>
      tried({
        provider,
        name,
        parameters: {
          temperature: parameters?.temperature ?? null,
          maxOutputTokens: parameters?.maxOutputTokens ?? null,
          ...(parameters?.reasoning === undefined ? {} : { reasoning: parameters.reasoning }),
          toolChoice: request.toolChoice ?? "auto",
          ...(request.leftOut === undefined ? {} : { leftOut: request.leftOut })
        },
        startedAtMs,
        firstOutputMs,
        durationMs: clock.currentTimeMillisUnsafe() - startedAtMs,
        finish,
        failure: finish === null ? failureOf(exit) : null
      })
    )
  return Stream.onExit(Stream.map(parts, note), report)
})

const failureOf = (exit: Exit.Exit<unknown, ModelFailure>): ModelTry["failure"] => {
  const failure = Exit.isFailure(exit) ? Cause.findErrorOption(exit.cause) : Option.none<ModelFailure>()
  return Option.match(failure, {
    onNone: () => ({ reason: "aborted" as const, message: "The request was broken off" }),
    onSome: ({ message, reason }) => ({ reason, message })
  })
}
