/**
 * One attempt to get one answer out of one model.
 *
 * Flow: graph → outbox → dispatch → run → **model** → tool → task
 *
 * Every model is asked through here, the script as well as the providers:
 * effect's `LanguageModel` with its own tool loop switched off. An attempt ends
 * with a finish or a failure, never in silence: two clocks watch it. Tool calls
 * wait for the finish, so a broken answer delivers none. No retry here.
 */
import type { ModelProvider } from "@tropism/domain/model-config"
import { costMicrosOf, type ModelPrice } from "@tropism/domain/model-price"
import type { Usage } from "@tropism/domain/run"
import { Duration, Effect, Schema, Stream } from "effect"
import { AiError, type LanguageModel, type Response, Tool, Toolkit } from "effect/ai"
import { modelLimits } from "../limits.ts"
import { endedTooEarly } from "./ai-sdk-error.ts"
import { argumentsFault } from "./ai-sdk-parts.ts"
import { charsOf, tokensOf } from "./estimated-usage.ts"
import { SpokenSoFar } from "./script-scope.ts"
import { keepable, keepableCount, keepableUsage, makeKeepableText, makeMeasure } from "./keepable-parts.ts"
import {
  ModelFailure,
  type ModelFailureReason,
  type ModelParameters,
  type ModelPart,
  type ModelRequest,
  type ModelToolCall
} from "./model-request.ts"
import { toPrompt } from "./prompt.ts"

/** A model that can be asked, and what it calls itself. */
export interface AskedModel {
  readonly provider: ModelProvider
  readonly name: string
  readonly price: ModelPrice | null
  /** The model as it answers a request by its number; only a recorded run answers each in its own way. */
  readonly languageModelAt: (step: number) => Effect.Effect<LanguageModel.LanguageModel>
  /** Whose server answers, and where it lies; absent where there is none. */
  readonly where?: string
  /** What it is asked with each time. */
  readonly parameters?: Partial<Omit<ModelParameters, "toolChoice">>
}

/** Asks a model once. */
export const attempt = (model: AskedModel, request: ModelRequest): Stream.Stream<ModelPart, ModelFailure> =>
  Stream.suspend(() => {
    const delivery = makeDelivery(model, request)
    const measure = makeMeasure()
    const timeoutMs = request.timeoutMs ?? modelLimits.requestTimeoutMs
    return streamParts(model, request).pipe(
      Stream.timeoutOrElse({
        duration: modelLimits.silenceTimeoutMs,
        orElse: () =>
          Stream.fail(
            delivery.failure("silent", `The model said nothing for ${seconds(modelLimits.silenceTimeoutMs)}`)
          )
      }),
      Stream.interruptWhen(
        Effect.flatMap(Effect.sleep(timeoutMs), () =>
          Effect.fail(delivery.failure("timeout", `The model did not finish within ${seconds(timeoutMs)}`))
        )
      ),
      Stream.mapError((error) => (AiError.isAiError(error) ? delivery.failureOf(error) : error)),
      Stream.mapEffect((part) => {
        if (part.type === "error") return Effect.fail(delivery.failure("cut", "The answer broke off"))
        // An empty answer would look like one of a model that has nothing to say.
        if (part.type === "finish" && part.reason === "content-filter" && delivery.isEmpty())
          return Effect.fail(delivery.failure("refused", "The provider's content filter withheld the answer"))
        const excess = measure(part)
        if (excess !== undefined) return Effect.fail(delivery.failure("invalidResponse", excess))
        return Effect.succeed(part)
      }),
      Stream.tap((part) => (part.type === "finish" ? tellOddUsage(model, part) : Effect.void)),
      Stream.map(delivery.take),
      Stream.flattenIterable,
      Stream.concat(
        Stream.suspend(() =>
          delivery.isFinished()
            ? Stream.empty
            : Stream.fail(delivery.failure("cut", endedTooEarly(model.where ?? model.name)))
        )
      )
    )
  })

const streamParts = (model: AskedModel, request: ModelRequest) =>
  Stream.unwrap(
    Effect.gen(function* () {
      const prompt = yield* toPrompt(request.messages)
      const languageModel = yield* model.languageModelAt(request.step ?? 0)
      return languageModel.streamText({
        prompt,
        toolkit: toolkitOf(request.tools),
        toolChoice: request.toolChoice ?? "auto",
        disableToolCallResolution: true,
        toolCallValidation: "deferred"
      })
    })
  ).pipe(Stream.provideService(SpokenSoFar, request.spoken))

type Toolbelt = ReturnType<typeof makeToolkit>

/** Toolkits by the list that they were made of: effect builds schemas for each, and agents offer the same lists again and again. */
const toolkits = new WeakMap<ModelRequest["tools"], Toolbelt>()

const toolkitOf = (tools: ModelRequest["tools"]): Toolbelt => {
  const toolkit = toolkits.get(tools) ?? makeToolkit(tools)
  toolkits.set(tools, toolkit)
  return toolkit
}

const makeToolkit = (tools: ModelRequest["tools"]) =>
  Toolkit.make(
    ...tools.map((tool) =>
      Tool.dynamic(tool.name, {
        description: tool.description,
        parameters: tool.inputSchema,
        success: Schema.Unknown
      })
    )
  )

/** Keeps what one attempt has delivered, and holds the tool calls back until the finish. */
const makeDelivery = (model: AskedModel, request: ModelRequest) => {
  let saidChars = 0
  const held: Array<ModelToolCall> = []
  const spoken = makeKeepableText()
  let outputBegan = false
  let isFinished = false
  const failure = (
    reason: ModelFailureReason,
    message: string,
    retryAfterMs: number | null = null
  ): ModelFailure =>
    new ModelFailure({
      provider: model.provider,
      model: model.name,
      reason,
      message: keepable(message),
      outputBegan,
      isRetryable: !outputBegan && retryable.has(reason),
      retryAfterMs
    })
  return {
    failure,
    isFinished: () => isFinished,
    isEmpty: () => !outputBegan && held.length === 0,
    failureOf: (error: AiError.AiError): ModelFailure => {
      const pauseMs = error.retryAfter === undefined ? null : Duration.toMillis(error.retryAfter)
      const tooLong =
        pauseMs !== null && pauseMs > modelLimits.retryAfterMaxMs
          ? ` (it asks to wait for ${seconds(pauseMs)}, and this server waits at most ${seconds(modelLimits.retryAfterMaxMs)})`
          : ""
      return failure(reasonOf(error.reason), `${messageOf(error.reason)}${tooLong}`, pauseMs)
    },
    take: (part: Response.AnyPart): ReadonlyArray<ModelPart> => {
      saidChars += charsIn(part)
      if (part.type === "text-delta" && part.delta !== "") {
        outputBegan = true
        return textOf(spoken.take(part.delta))
      }
      if (part.type === "tool-call") held.push(toToolCall(part))
      if (part.type !== "finish") return []
      outputBegan = true
      isFinished = true
      if (part.reason === "tool-calls" && held.length === 0) held.push(nameless)
      const { inputTokens, outputTokens } = part.usage
      const usage = keepableUsage({
        inputTokens: inputTokens.total ?? tokensOf(charsOf(request)),
        outputTokens: outputTokens.total ?? tokensOf(saidChars)
      })
      const cachedInputTokens = keepableCount(inputTokens.cacheRead ?? 0)
      return [
        ...textOf(spoken.rest()),
        ...held.splice(0),
        {
          type: "finish",
          reason: part.reason,
          usage,
          isUsageEstimated: inputTokens.total === undefined || outputTokens.total === undefined,
          costMicros: costMicrosOf(model.price, { ...usage, cachedInputTokens }),
          provider: model.provider,
          name: model.name
        }
      ]
    }
  }
}

/** The characters of a part that a model has spoken or thought. */
const charsIn = (part: Response.AnyPart): number => {
  if (part.type === "text-delta" || part.type === "reasoning-delta") return part.delta.length
  return part.type === "tool-call" ? part.name.length + (JSON.stringify(part.params)?.length ?? 0) : 0
}

/** What a model called that says it called a tool and named none: provider packages drop such a call, and it is answered like one of an unknown tool. */
const nameless: ModelToolCall = { type: "toolCall", id: "", name: "unnamed", arguments: {}, fault: null }

const textOf = (delta: string): ReadonlyArray<ModelPart> => (delta === "" ? [] : [{ type: "text", delta }])

const reportedUsage = ({ usage }: Response.FinishPart): Usage => ({
  inputTokens: usage.inputTokens.total ?? 0,
  outputTokens: usage.outputTokens.total ?? 0
})

/** Says where a provider counts what no count of tokens can be. */
const tellOddUsage = ({ name, provider }: AskedModel, part: Response.FinishPart) => {
  const reported = reportedUsage(part)
  const kept = keepableUsage(reported)
  return kept.inputTokens === reported.inputTokens && kept.outputTokens === reported.outputTokens
    ? Effect.void
    : Effect.logWarning("A provider reported a usage that cannot be kept", { provider, name, reported, kept })
}

const isJson = Schema.is(Schema.Json)

const toToolCall = (part: Response.ToolCallPart<string, unknown>): ModelToolCall => {
  const fault = part.metadata[argumentsFault]
  return {
    type: "toolCall",
    id: keepable(part.id),
    name: keepable(part.name),
    arguments: isJson(part.params) ? part.params : null,
    fault: typeof fault === "string" ? fault : null
  }
}

const retryable: ReadonlySet<ModelFailureReason> = new Set(["rateLimited", "unavailable", "silent", "cut"])

const reasonOf = (reason: AiError.AiErrorReason): ModelFailureReason => {
  switch (reason._tag) {
    case "RateLimitError":
      return "rateLimited"
    case "QuotaExhaustedError":
      return "quota"
    case "AuthenticationError":
      return "authentication"
    case "InternalProviderError":
      return "unavailable"
    case "NetworkError":
      return "cut"
    case "InvalidRequestError":
    case "ContentPolicyError":
    case "UnsupportedSchemaError":
    case "InvalidUserInputError":
      return "refused"
    default:
      return "invalidResponse"
  }
}

/** The provider's own words where it gave some; effect's otherwise. */
const messageOf = (reason: AiError.AiErrorReason): string => {
  const told = "metadata" in reason ? reason.metadata["description"] : undefined
  if (typeof told === "string") return told
  return "description" in reason && reason.description !== undefined ? reason.description : reason.message
}

const seconds = (ms: number): string => `${Math.round(ms / 100) / 10} s`
