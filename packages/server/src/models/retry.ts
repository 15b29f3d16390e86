/**
 * Retries a failed model request, then uses the fallback; or races both.
 *
 * **Invariant**: nothing is retried after a part was delivered. A server's requested pause is respected, unless it is longer than a caller
 * would wait. This is the only automatic retry: tools and runs are retried only by a person or a declared policy.
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

/** A model's fallback, or why it is unavailable. */
export type Fallback = AskedModel | { readonly unavailable: string }

/** The retry policy, and whether to race the fallback. */
export interface AskingTerms {
  readonly retry: RetryConfig
  readonly isRacing: boolean
}

/** The default retry policy. */
export const defaultRetry: RetryConfig = {
  maxRetries: modelLimits.maxRetries,
  baseMs: modelLimits.retryBaseMs,
  maxMs: modelLimits.retryMaxMs,
  factor: 2
}

/** Requests an answer with retries, then from the fallback; or races both. */
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
    // A model that was silent for minutes is not retried where a fallback can answer: the run would be abandoned first.
    const first = patiently(model, ({ reason }) => "unavailable" in fallback || reason !== "silent")
    return orFallback(first, fallback, patiently)
  }
  return race(patiently(model), patiently(fallback))
}

/** The answer of a model, otherwise of its fallback. */
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

/** Exponential backoff up to a limit; the server's requested pause counts where it is longer. */
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

// One attempt at one answer from one model.
//
// Every model, scripted or remote, is called through here. An attempt ends with a finish or a failure: two timers guarantee it. Parts that
// arrive together are delivered together (`delivery.ts` decides which). No retries here.

/** Sends one request to a model. */
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
          // Reasoning and streaming arguments are progress, although nothing is delivered yet.
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

/** Fails when a model is silent for too long or exceeds the total time; both are checked at each part, from the first on. */
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

/** Tools by their list: effect builds schemas for each, and agents offer the same lists again and again. */
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

// Reports every attempt of a model request.
//
// An attempt that fails, is retried or is cancelled costs time and often money, so the caller gets each in order. Nothing is stored here,
// and parts pass through as they come.

/** Sends one request and reports its outcome. */
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

// Races two models: the first to produce output wins (S004-F07).
//
// The other request is aborted at that moment, on the wire too. A model that fails before any output leaves the race to the other.
// Delivered output cannot be withdrawn, so a winner that fails later has no fallback.

type RacedParts = Stream.Stream<ModelPart, ModelFailure>

/** Delivers the faster model; if both fail, the failure describes both. */
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

// Converts messages to effect's `Prompt`.
//
// Messages never change and each request repeats all earlier ones, so each is converted once, and a request's prompt is the previous one
// plus the new messages.

/** The prompt of a request, equal to effect's decoding of the messages' JSON form. */
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
