/**
 * What happens when an attempt fails: the same model again, then the fallback; or both are asked at once.
 *
 * Neither happens once a part was delivered, because what was said cannot be
 * unsaid. A pause that the server asks for is kept, unless it is
 * longer than anybody would wait. Every other retry in the server is a person's
 * or a declared policy's: there is none of tools and none of runs here.
 */
import type { RetryConfig } from "@tropism/domain/context-config"
import { mapGrown } from "@tropism/domain/grown"
import type { AssistantPart, Message, UserPart } from "@tropism/domain/message"
import { Duration, Effect, Schedule, Stream, Cause, Clock, Pull, Schema, Exit, Option } from "effect"
import { Tool, Toolkit, AiError, Prompt } from "effect/ai"
import { modelLimits } from "../limits.ts"
import { endedTooEarly } from "./ai-sdk-error.ts"
import { type AskedModel, type Delivery, makeDelivery, seconds } from "./delivery.ts"
import {
  ModelFailure,
  type ModelPart,
  type ModelRequest,
  type PartStream,
  type ModelFinish,
  type ModelTry
} from "./model-request.ts"
import { CurrentProgress } from "./progress.ts"
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

// One attempt to get one answer out of one model.
//
// Every model is asked through here, the script as well as the providers. An
// attempt ends with a finish or a failure, never in silence: two clocks watch
// it. What comes together is handed on together (`delivery.ts` says what of it).
// No retry here.

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
  { failure }: Delivery
): Effect.Effect<never, ModelFailure> => {
  const timeoutMs = request.timeoutMs ?? modelLimits.requestTimeoutMs
  const endMs = clock.currentTimeMillisUnsafe() + timeoutMs
  return Effect.suspend(() => {
    const leftMs = Math.max(0, endMs - clock.currentTimeMillisUnsafe())
    return leftMs <= modelLimits.silenceTimeoutMs
      ? Effect.flatMap(Effect.sleep(leftMs), () =>
          Effect.fail(failure("timeout", `The model did not finish within ${seconds(timeoutMs)}`))
        )
      : Effect.flatMap(Effect.sleep(modelLimits.silenceTimeoutMs), () =>
          Effect.fail(
            failure("silent", `The model said nothing for ${seconds(modelLimits.silenceTimeoutMs)}`)
          )
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

// Tells of each try of a model request how it went.
//
// A try that fails, that is asked again or that is broken off costs time and
// often money: whoever asks is told of every one of them, in order. Nothing is
// written here, and the parts pass through as they come.

/** Asks a model once, and says afterwards how that went. */
const observed = (model: AskedModel, request: ModelRequest): Stream.Stream<ModelPart, ModelFailure> => {
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

// Two models that are asked the same at the same time: the first that says anything is heard (S004-F07).
//
// The other request is broken off at that moment, on the wire too. A model that
// fails before either has spoken leaves the race to the other; what was said
// cannot be unsaid, so a winner that breaks down later is not stood in for.

type RacedParts = Stream.Stream<ModelPart, ModelFailure>

/** Hears whoever speaks first; where nobody does, the failure tells of both. */
const race = (first: RacedParts, second: RacedParts): RacedParts =>
  Stream.suspend(() => {
    const failures: Array<ModelFailure> = []
    const noted = (parts: RacedParts): RacedParts =>
      Stream.mapError(parts, (failure) => {
        if (!failure.outputBegan) failures.push(failure)
        return failure
      })
    return Stream.mapError(Stream.race(noted(first), noted(second)), (failure) => {
      const other = failures.find((each) => each !== failure)
      return other === undefined || failure.outputBegan
        ? failure
        : new ModelFailure({
            ...failure,
            message: `${failure.message} (asked beside ${other.provider}:${other.model}, which failed too: ${other.message})`
          })
    })
  })

// The messages of a context as effect's `Prompt`, which every model takes.
//
// A message never changes and each request of a run sends all that went before
// again, so each is translated once, and the prompt of a request is that of the
// one before with what is new.

/** The prompt of a request, equal to what effect makes of the messages in their JSON form. */
export const toPrompt = (messages: ReadonlyArray<Message>): Effect.Effect<Prompt.Prompt, AiError.AiError> =>
  Effect.try({
    try: () => Prompt.fromMessages(translatedOf(messages)),
    catch: () =>
      AiError.make({
        module: "model",
        method: "attempt",
        reason: new AiError.InvalidRequestError({
          description: "The context does not fold to messages a model can be sent"
        })
      })
  })

const translate = (message: Message): Prompt.Message => {
  switch (message.role) {
    case "system":
      return Prompt.makeMessage("system", { content: message.content })
    case "user":
      return Prompt.makeMessage("user", {
        content:
          typeof message.content === "string"
            ? [Prompt.makePart("text", { text: message.content })]
            : message.content.map(toUserPart),
        ...(message.options === undefined ? {} : { options: message.options })
      })
    case "assistant":
      return Prompt.makeMessage("assistant", {
        content: message.content.map(toAssistantPart),
        ...(message.options === undefined ? {} : { options: message.options })
      })
    case "tool":
      return Prompt.makeMessage("tool", {
        content: message.content.map((part) =>
          Prompt.makePart("tool-result", { ...part, providerExecuted: false })
        )
      })
    default:
      message satisfies never
      throw new Error("A log gave a message of nobody")
  }
}

const toUserPart = (part: UserPart): Prompt.UserMessagePart =>
  part.type === "text" ? Prompt.makePart("text", part) : Prompt.makePart("file", part)

const toAssistantPart = (part: AssistantPart): Prompt.AssistantMessagePart =>
  part.type === "text"
    ? Prompt.makePart("text", part)
    : Prompt.makePart("tool-call", { ...part, providerExecuted: false })

const translatedOf = mapGrown(translate)
