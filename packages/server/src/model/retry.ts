/**
 * What happens when an attempt fails: the same model again, then the fallback.
 *
 * Neither happens once a part was delivered, because what was said cannot be
 * unsaid. A pause that the server asks for is kept, unless it is
 * longer than anybody would wait. Every other retry in the server is a person's
 * or a declared policy's: there is none of tools and none of runs here.
 */
import { Duration, Effect, Schedule, Stream } from "effect"
import { modelLimits } from "../limits.ts"
import type { AskedModel } from "./attempt.ts"
import { ModelFailure, type ModelPart, type ModelRequest } from "./model-request.ts"
import { observed } from "./observed.ts"

/** The model that stands in for another, or why there is none after all. */
export type Fallback = AskedModel | { readonly unavailable: string }

/** Asks a model, patiently, and then its fallback. */
export const askWithRetries = (
  model: AskedModel,
  fallback: Fallback | null,
  request: ModelRequest
): Stream.Stream<ModelPart, ModelFailure> => {
  const first = patiently(model, request)
  if (fallback === null) return first
  return Stream.catchIf(
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
                patiently(fallback, request),
                (second) =>
                  new ModelFailure({
                    ...second,
                    message: `${second.message} (asked after ${nameOf(failure)} failed: ${failure.message})`
                  })
              )
            )
          )
  )
}

const patiently = (model: AskedModel, request: ModelRequest): Stream.Stream<ModelPart, ModelFailure> =>
  Stream.retry(observed(model, request), backoff)

const backoff = Schedule.exponential(modelLimits.retryBaseMs).pipe(
  Schedule.jittered,
  Schedule.upTo({ times: modelLimits.maxRetries }),
  Schedule.setInputType<ModelFailure>(),
  Schedule.while(
    ({ input }) => input.isRetryable && (input.retryAfterMs ?? 0) <= modelLimits.retryAfterMaxMs
  ),
  Schedule.modifyDelay(({ input, duration }) =>
    Effect.succeed(
      Math.max(input.retryAfterMs ?? 0, Math.min(Duration.toMillis(duration), modelLimits.retryMaxMs))
    )
  ),
  Schedule.tap(({ input, duration }) =>
    Effect.logWarning(
      `${nameOf(input)} failed (${input.reason}: ${input.message}); asking again in ${Math.round(Duration.toMillis(duration))} ms`
    )
  )
)

const nameOf = (failure: ModelFailure): string => `${failure.provider}:${failure.model}`
