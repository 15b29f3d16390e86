/**
 * One attempt to get one answer out of one model.
 *
 * Flow: graph → outbox → dispatch → run → **model** → tool → task
 *
 * Every model is asked through here, the script as well as the providers. An
 * attempt ends with a finish or a failure, never in silence: two clocks watch
 * it. What comes together is handed on together (`delivery.ts` says what of it).
 * No retry here.
 */
import { Cause, Clock, Effect, Pull, Schema, Stream } from "effect"
import { Tool, Toolkit } from "effect/ai"
import { modelLimits } from "../limits.ts"
import { endedTooEarly } from "./ai-sdk-error.ts"
import { type AskedModel, type Delivery, makeDelivery, seconds } from "./delivery.ts"
import type { PartStream } from "./model-port.ts"
import type { ModelFailure, ModelPart, ModelRequest } from "./model-request.ts"
import { CurrentProgress } from "./progress.ts"
import { toPrompt } from "./prompt.ts"

/** Asks a model once. */
export const attempt = (model: AskedModel, request: ModelRequest): Stream.Stream<ModelPart, ModelFailure> =>
  Stream.transformPull(streamParts(model, request), (pull) =>
    Effect.gen(function* () {
      const clock = yield* Clock.Clock
      const progress = yield* CurrentProgress
      const delivery = makeDelivery(model, request)
      const unfinished = () => delivery.failure("cut", endedTooEarly(model.where ?? model.name))
      const watched = Effect.raceFirst(pull, makeClocks(clock, request, delivery))
      const next: Pull.Pull<Parts, ModelFailure> = Effect.suspend(() => {
        const broken = delivery.broken()
        return broken === undefined ? heard : Effect.fail(broken)
      })
      const heard: Pull.Pull<Parts, ModelFailure> = Pull.matchEffect(watched, {
        onSuccess: (parts) => {
          // A model that thinks, or writes arguments, says nothing that is delivered yet.
          progress.note()
          const [first, ...others] = delivery.take(parts)
          const told: typeof next = first === undefined ? next : Effect.succeed([first, ...others])
          const warning = delivery.warning()
          return warning === undefined ? told : Effect.andThen(warning, told)
        },
        onFailure: (cause) => Effect.failCause(Cause.map(cause, delivery.failureOf)),
        onDone: (): typeof next => (delivery.isFinished() ? Cause.done() : Effect.fail(unfinished()))
      })
      return next
    })
  )

type Parts = readonly [ModelPart, ...Array<ModelPart>]

/** Fails when a model has said nothing for too long, or is not through in time; counted anew for each part, and from the first. */
const makeClocks = (
  clock: Clock.Clock,
  request: ModelRequest,
  { failure, silenceMs }: Delivery
): Effect.Effect<never, ModelFailure> => {
  const timeoutMs = request.timeoutMs ?? modelLimits.requestTimeoutMs
  const endMs = clock.currentTimeMillisUnsafe() + timeoutMs
  return Effect.suspend(() => {
    const leftMs = Math.max(0, endMs - clock.currentTimeMillisUnsafe())
    const quietMs = silenceMs()
    return leftMs <= quietMs
      ? Effect.flatMap(Effect.sleep(leftMs), () =>
          Effect.fail(failure("timeout", `The model did not finish within ${seconds(timeoutMs)}`))
        )
      : Effect.flatMap(Effect.sleep(quietMs), () =>
          Effect.fail(failure("silent", `The model said nothing for ${seconds(quietMs)}`))
        )
  })
}

const streamParts = ({ port }: AskedModel, request: ModelRequest): PartStream =>
  Stream.unwrap(
    Effect.map(toPrompt(request.messages), (prompt) =>
      port({
        prompt,
        tools: toolsOf(request.tools),
        toolChoice: request.toolChoice ?? "auto",
        step: request.step,
        spoken: request.spoken
      })
    )
  )

/** Tools by the list that they were made of: effect builds schemas for each, and agents offer the same lists again and again. */
const known = new WeakMap<ModelRequest["tools"], ReadonlyArray<Tool.Any>>()

const toolsOf = (tools: ModelRequest["tools"]): ReadonlyArray<Tool.Any> => {
  const made = known.get(tools) ?? makeTools(tools)
  known.set(tools, made)
  return made
}

const makeTools = (tools: ModelRequest["tools"]): ReadonlyArray<Tool.Any> =>
  Object.values(
    Toolkit.make(
      ...tools.map((tool) =>
        Tool.dynamic(tool.name, {
          description: tool.description,
          parameters: tool.inputSchema,
          success: Schema.Unknown
        })
      )
    ).tools
  )
