/**
 * What happens when an attempt fails: the same model again, then the fallback; or both are asked at once.
 *
 * Neither happens once a part was delivered, because what was said cannot be
 * unsaid. A pause that the server asks for is kept, unless it is
 * longer than anybody would wait. Every other retry in the server is a person's
 * or a declared policy's: there is none of tools and none of runs here.
 */
import type { RetryConfig } from "@tropism/domain/context-config"
import { Duration, Effect, Schedule, Stream } from "effect"
import { modelLimits } from "../limits.ts"
import type { AskedModel } from "./delivery.ts"
import { ModelFailure, type ModelPart, type ModelRequest } from "./model-request.ts"
import { observed } from "./observed.ts"
import { race } from "./race.ts"
import { withinWindow } from "./window.ts"

/** The model that stands in for another, or why there is none after all. */
export type Fallback = AskedModel | { readonly unavailable: string }

/** How patient the asker is, and whether the fallback is asked at the same time. */
export interface AskingTerms {
  readonly retry: RetryConfig
  readonly isRacing: boolean
}

/** How patient everybody is who says nothing else. */
export const defaultRetry: RetryConfig = {
  maxRetries: modelLimits.maxRetries,
  baseMs: modelLimits.retryBaseMs,
  maxMs: modelLimits.retryMaxMs,
  factor: 2
}

/** Asks a model, patiently, and then its fallback; or both of them at once. */
export const askWithRetries = (
  model: AskedModel,
  fallback: Fallback | null,
  request: ModelRequest,
  { isRacing, retry }: AskingTerms
): Stream.Stream<ModelPart, ModelFailure> => {
  const patiently = (asked: AskedModel, may: (failure: ModelFailure) => boolean = () => true) =>
    withinWindow(asked.window, request, (fitting) =>
      Stream.retry(
        asked.inTurn?.(observed(asked, fitting), request.admitted) ?? observed(asked, fitting),
        backoffOf(retry, (failure) => may(failure) && (request.mayRetry?.(failure) ?? true))
      )
    )
  if (fallback === null) return patiently(model)
  if ("unavailable" in fallback || !isRacing) {
    // Who was silent for minutes is not asked again where another may answer: the run would be abandoned before.
    const first = patiently(model, ({ reason }) => "unavailable" in fallback || reason !== "silent")
    return orFallback(first, fallback, patiently)
  }
  return race(patiently(model), patiently(fallback))
}

/** The answer of a model, else of the one that stands in for it. */
const orFallback = (
  first: Stream.Stream<ModelPart, ModelFailure>,
  fallback: Fallback,
  patiently: (asked: AskedModel) => Stream.Stream<ModelPart, ModelFailure>
): Stream.Stream<ModelPart, ModelFailure> =>
  Stream.catchIf(
    first,
    (failure) => !failure.outputBegan,
    (failure) =>
      "unavailable" in fallback
        ? Stream.fail(
            new ModelFailure({
              ...failure,
              message: `${failure.message} (its fallback cannot be used: ${fallback.unavailable})`
            })
          )
        : Stream.unwrap(
            Effect.as(
              Effect.logWarning(
                `${nameOf(failure)} failed (${failure.reason}: ${failure.message}); asking ${fallback.provider}:${fallback.name}`
              ),
              Stream.mapError(
                patiently(fallback),
                (second) =>
                  new ModelFailure({
                    ...second,
                    message: `${second.message} (asked after ${nameOf(failure)} failed: ${failure.message})`
                  })
              )
            )
          )
  )

/** Pauses that grow, up to a bound; a pause that the server asks for is kept where it is longer. */
const backoffOf = (
  { baseMs, factor, maxMs, maxRetries }: RetryConfig,
  may: (failure: ModelFailure) => boolean
) =>
  Schedule.exponential(baseMs, factor).pipe(
    Schedule.jittered,
    Schedule.upTo({ times: maxRetries }),
    Schedule.setInputType<ModelFailure>(),
    Schedule.while(
      ({ input }) =>
        input.isRetryable && may(input) && (input.retryAfterMs ?? 0) <= modelLimits.retryAfterMaxMs
    ),
    Schedule.modifyDelay(({ input, duration }) =>
      Effect.succeed(Math.max(input.retryAfterMs ?? 0, Math.min(Duration.toMillis(duration), maxMs)))
    ),
    Schedule.tap(({ input, duration }) =>
      Effect.logWarning(
        `${nameOf(input)} failed (${input.reason}: ${input.message}); asking again in ${Math.round(Duration.toMillis(duration))} ms`
      )
    )
  )

const nameOf = (failure: ModelFailure): string => `${failure.provider}:${failure.model}`
