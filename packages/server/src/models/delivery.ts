/**
 * Decides which parts of one attempt's answer are delivered, and when.
 *
 * Pure. Text is delivered as it comes. **Invariant**: tool calls wait for the finish, so a broken answer delivers none. Text before a fault
 * is delivered first.
 */
import type { AnswerPart } from "@tropism/domain/answer-part"
import { isJsonObject } from "@tropism/domain/json"
import type { ModelProvider } from "@tropism/domain/model-config"
import { cachedCostMicrosOf, costMicrosOf, type ModelPrice } from "@tropism/domain/model-price"
import type { Usage } from "@tropism/domain/run"
import { Duration, Effect, Schema, type Stream } from "effect"
import { AiError, type Response } from "effect/ai"
import { modelLimits } from "../limits.ts"
import { argumentsFault, charsOf, tokensOf } from "./ai-sdk-model.ts"
import { spokenThinking } from "./thinking-tags.ts"
import {
  type ModelPort,
  ModelFailure,
  type ModelFailureReason,
  type ModelParameters,
  type ModelPart,
  type ModelRequest,
  type ModelToolCall,
  type FinishedPart
} from "./model-request.ts"
import { keepable, keepableCallId, keepableUsage, makeKeepableText, makeMeasure } from "./storable-parts.ts"
import { saysTooLong, type KnownWindow } from "./window.ts"

/** An available model and its properties. */
export interface AskedModel {
  readonly provider: ModelProvider
  readonly name: string
  readonly price: ModelPrice | null
  readonly port: ModelPort
  /** The maximum gap between two parts of its answer, where its definition sets one. */
  readonly silenceTimeoutMs?: number
  /** Absent where there is no window. */
  readonly window?: KnownWindow
  /** The provider and address of its server; absent where there is none. */
  readonly where?: string
  /** Queues a request until it may be sent; absent where there is no server. */
  readonly inTurn?: (
    parts: Stream.Stream<ModelPart, ModelFailure>,
    admitted: Effect.Effect<void, ModelFailure> | undefined
  ) => Stream.Stream<ModelPart, ModelFailure>
  /** Parameters of each request. */
  readonly parameters?: Partial<Pick<ModelParameters, "temperature" | "maxOutputTokens" | "reasoning">>
}

export type Delivery = ReturnType<typeof makeDelivery>

/** Tracks the delivered and pending parts of one attempt. */
export const makeDelivery = (model: AskedModel, request: ModelRequest) => {
  let saidChars = 0
  let textChars = 0
  let thoughtChars = 0
  const held: Array<ModelToolCall> = []
  const spoken = makeKeepableText()
  const measure = makeMeasure()
  const answerParts = makeAnswerParts()
  let outputBegan = false
  let isFlowing = false
  let isFinished = false
  let broken: ModelFailure | undefined
  let odd: Response.FinishPartEncoded | undefined
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
  const failureOf = (error: AiError.AiError | ModelFailure): ModelFailure => {
    if (!AiError.isAiError(error)) return error
    const pauseMs = error.retryAfter === undefined ? null : Duration.toMillis(error.retryAfter)
    const isTooLong = pauseMs !== null && pauseMs > modelLimits.retryAfterMaxMs
    // A caller that decides about retries itself may accept any pause.
    const atMost = request.mayRetry
      ? ""
      : `, and this server waits at most ${seconds(modelLimits.retryAfterMaxMs)}`
    const tooLong = isTooLong ? ` (it asks to wait for ${seconds(pauseMs)}${atMost})` : ""
    const message = messageOf(error.reason)
    const reason = reasonOf(error.reason)
    const isWindow = mayBeWindow.has(reason) && saysTooLong(message)
    return failure(isWindow ? "tooLong" : reason, `${message}${tooLong}`, pauseMs)
  }
  /** Why an answer cannot continue with a part. */
  const faultOf = (part: Response.StreamPartEncoded): ModelFailure | undefined => {
    if (part.type === "error") return failure("cut", "The answer broke off")
    // Nothing was delivered yet, so a fallback may answer.
    if (part.type === "finish" && part.reason === "content-filter" && !outputBegan)
      return failure("filtered", "The provider's content filter withheld the answer")
    const excess = measure(part)
    return excess === undefined ? undefined : failure("invalidResponse", excess)
  }
  const finish = (part: Response.FinishPartEncoded): ReadonlyArray<ModelPart> => {
    outputBegan = true
    isFinished = true
    if (isOdd(part)) odd = part
    if (part.reason === "tool-calls" && held.length === 0) held.push(nameless)
    // The provider stopped the answer in the middle, so these calls may be incomplete.
    if (part.reason === "content-filter") held.splice(0)
    const last = held.at(-1)
    if (part.reason === "length" && last !== undefined && (last.fault !== null || isBare(last)))
      held[held.length - 1] = { ...last, fault: cutArguments }
    const { inputTokens, outputTokens } = part.usage
    // A prompt is never empty and an answer uses tokens, so zero means that the provider does not count.
    const isCounted = (total: number | undefined) =>
      model.where === undefined || (total !== 0 && (total ?? 0) <= modelLimits.requestMaxTokens)
    const inputCount = isCounted(inputTokens.total) ? inputTokens.total : undefined
    const outputCount = saidChars === 0 || isCounted(outputTokens.total) ? outputTokens.total : undefined
    const parts = answerParts.finish()
    const usage = keepableUsage({
      inputTokens: inputCount ?? tokensOf(charsOf(request)),
      outputTokens: outputCount ?? tokensOf(saidChars),
      cachedInputTokens: inputTokens.cacheRead ?? 0,
      cacheWriteTokens: inputTokens.cacheWrite ?? 0,
      reasoningTokens: outputTokens.reasoning ?? 0
    })
    return [
      ...textOf(spoken.rest()),
      ...held.splice(0),
      {
        type: "finish",
        reason: part.reason,
        usage,
        isUsageEstimated: inputCount === undefined || outputCount === undefined,
        costMicros: costMicrosOf(model.price, usage),
        cachedCostMicros: cachedCostMicrosOf(model.price, usage),
        provider: model.provider,
        name: model.name,
        ...(request.leftOut === undefined ? {} : { leftOut: request.leftOut }),
        ...(parts === undefined ? {} : { parts }),
        ...(thoughtChars === 0 ? {} : { thoughtChars })
      }
    ]
  }
  return {
    failure,
    failureOf,
    isFinished: () => isFinished,
    /** The currently allowed gap between parts: hidden reasoning, or a call that arrives whole, takes longer than streaming text. */
    silenceMs: () => {
      const silenceMs = model.silenceTimeoutMs ?? modelLimits.silenceTimeoutMs
      return isFlowing
        ? silenceMs
        : Math.max(silenceMs, Math.min(2 * silenceMs, modelLimits.firstPieceTimeoutMs))
    },
    /** Why the answer ended, once the parts before it are delivered. */
    broken: () => broken,
    /** A one-time warning about the answer. */
    warning: () => {
      const part = odd
      odd = undefined
      return part && tellOddUsage(model, part)
    },
    /** The parts to deliver now. */
    take: (parts: ReadonlyArray<Response.StreamPartEncoded>): ReadonlyArray<ModelPart> => {
      const told: Array<ModelPart> = []
      for (const part of parts) {
        broken = faultOf(part)
        if (broken !== undefined) break
        saidChars += charsIn(part)
        if (isPiece.has(part.type)) isFlowing = true
        if (isOpening.has(part.type)) isFlowing = false
        answerParts.take(part)
        if (part.type === "reasoning-end" && part.id === spokenThinking) thoughtChars = textChars
        if (part.type === "text-delta" && part.delta !== "") {
          outputBegan = true
          const delta = spoken.take(part.delta)
          textChars += delta.length
          told.push(...textOf(delta))
        }
        if (part.type === "tool-call") held.push(toToolCall(part))
        if (part.type === "finish") told.push(...finish(part))
      }
      return told
    }
  }
}

type PartType = Response.StreamPartEncoded["type"]
const isPiece: ReadonlySet<PartType> = new Set(["text-delta", "reasoning-delta", "tool-params-delta"])
const isOpening: ReadonlySet<PartType> = new Set(["reasoning-start", "tool-params-start"])

/** The characters of text or reasoning in a part. */
const charsIn = (part: Response.StreamPartEncoded): number => {
  if (part.type === "text-delta" || part.type === "reasoning-delta") return part.delta.length
  return part.type === "tool-call" ? part.name.length + (JSON.stringify(part.params)?.length ?? 0) : 0
}

/** A model that reports a tool call without naming one: packages drop such a call, so it is answered like a call of an unknown tool. */
const nameless: ModelToolCall = { type: "toolCall", id: "", name: "unnamed", arguments: {}, fault: null }

const cutArguments =
  "The answer reached its limit of output tokens before these arguments were complete, so send less at once"

/** Missing arguments look like `{}`. */
const isBare = (call: ModelToolCall): boolean =>
  isJsonObject(call.arguments) && Object.keys(call.arguments).length === 0

const textOf = (delta: string): ReadonlyArray<ModelPart> => (delta === "" ? [] : [{ type: "text", delta }])

const reportedUsage = ({ usage }: Response.FinishPartEncoded): Usage => ({
  inputTokens: usage.inputTokens.total ?? 0,
  outputTokens: usage.outputTokens.total ?? 0
})

/** Whether a provider reports impossible token counts. */
const isOdd = (part: Response.FinishPartEncoded): boolean => {
  const reported = reportedUsage(part)
  const kept = keepableUsage(reported)
  return kept.inputTokens !== reported.inputTokens || kept.outputTokens !== reported.outputTokens
}

const tellOddUsage = ({ name, provider }: AskedModel, part: Response.FinishPartEncoded) => {
  const reported = reportedUsage(part)
  return Effect.logWarning(
    "A provider reported a usage that cannot be; what is beyond all bounds is estimated",
    {
      provider,
      name,
      reported
    }
  )
}

const isJson = Schema.is(Schema.Json)

const toToolCall = (part: Response.ToolCallPartEncoded): ModelToolCall => {
  const fault = part.metadata?.[argumentsFault]
  return {
    type: "toolCall",
    id: keepableCallId(part.id),
    name: keepable(part.name),
    arguments: isJson(part.params) ? part.params : null,
    fault: typeof fault === "string" ? fault : null
  }
}

const retryable: ReadonlySet<ModelFailureReason> = new Set(["rateLimited", "unavailable", "silent", "cut"])

/** The failures that a too-long prompt may cause: OpenAI's per-minute limit calls it a request too large. */
const mayBeWindow: ReadonlySet<ModelFailureReason> = new Set(["refused", "rateLimited", "unavailable"])

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

/** The provider's own message if there is one, otherwise effect's. */
const messageOf = (reason: AiError.AiErrorReason): string => {
  const told = "metadata" in reason ? reason.metadata["description"] : undefined
  if (typeof told === "string") return told
  return "description" in reason && reason.description !== undefined ? reason.description : reason.message
}

/** A duration as text. */
export const seconds = (ms: number): string => `${Math.round(ms / 100) / 10} s`

// Collects the parts of one answer in order: reasoning, text and tool calls, each with its metadata.
//
// Providers refuse the next request without the reasoning or the signatures of this one, so metadata is stored unchanged.

type Metadata = NonNullable<AnswerPart["metadata"]>

interface Gathered {
  readonly type: FinishedPart["type"]
  readonly id: string
  text: string
  chars: number
  metadata: Metadata
}

/** Collects parts while an answer streams. */
const makeAnswerParts = () => {
  const gathered: Array<Gathered> = []
  let isTooLong = false
  let size = 0
  const partOf = (type: Gathered["type"], id: string): Gathered => {
    const open = gathered.findLast((part) => part.type === type && part.id === id)
    // A tool call or another block between two pieces begins a new part, whatever ids the server sends.
    if (open !== undefined && type !== "toolCall" && gathered.at(-1) === open) return open
    const part: Gathered = { type, id, text: "", chars: 0, metadata: {} }
    gathered.push(part)
    return part
  }
  const attach = (part: Gathered, metadata: Response.ProviderMetadata | undefined) => {
    for (const [provider, value] of Object.entries((metadata ?? {}) as Metadata)) {
      if (provider === argumentsFault) continue
      part.metadata = { ...part.metadata, [provider]: { ...part.metadata[provider], ...value } }
      size += JSON.stringify(value).length
    }
  }
  return {
    take: (part: Response.StreamPartEncoded): void => {
      switch (part.type) {
        case "reasoning-start":
        case "text-start":
          gathered.push({ type: typeOf(part.type), id: part.id, text: "", chars: 0, metadata: {} })
          attach(partOf(typeOf(part.type), part.id), part.metadata)
          break
        case "reasoning-end":
        case "text-end": {
          if (part.id === spokenThinking) {
            gathered.splice(
              0,
              gathered.length,
              ...gathered.map((each) =>
                each.type === "text" ? { ...each, type: "reasoning" as const } : each
              )
            )
            size += gathered.reduce((sum, { type, chars }) => (type === "reasoning" ? sum + chars : sum), 0)
            break
          }
          const open = gathered.findLast(({ id, type }) => type === typeOf(part.type) && id === part.id)
          if (open !== undefined) attach(open, part.metadata)
          break
        }
        case "reasoning-delta": {
          const open = partOf("reasoning", part.id)
          open.text += part.delta
          size += part.delta.length
          attach(open, part.metadata)
          break
        }
        case "text-delta": {
          const open = partOf("text", part.id)
          open.chars += part.delta.length
          open.text += part.delta
          attach(open, part.metadata)
          break
        }
        case "tool-call":
          attach(partOf("toolCall", part.id), part.metadata)
          break
      }
      if (size > modelLimits.answerPartsMaxChars) isTooLong = true
    },
    /** The parts, if the model needs any of their metadata back. */
    finish: (): ReadonlyArray<FinishedPart> | undefined => {
      if (isTooLong) return undefined
      let call = 0
      const parts = gathered.flatMap((part): ReadonlyArray<FinishedPart> => {
        const metadata = Object.keys(part.metadata).length === 0 ? {} : { metadata: part.metadata }
        const isBare = Object.keys(metadata).length === 0
        if (part.type === "toolCall") return [{ type: "toolCall", call: call++, ...metadata }]
        if (part.type === "reasoning")
          return isBare && part.text === ""
            ? []
            : [{ type: "reasoning", text: keepable(part.text), ...metadata }]
        return isBare && part.chars === 0 ? [] : [{ type: "text", chars: part.chars, ...metadata }]
      })
      const isWanted = parts.some((part) => part.type === "reasoning" || isWantedBack(part.metadata))
      return isWanted ? parts : undefined
    }
  }
}

/** An item id alone, or an empty list, is useless to a provider that stores nothing. */
const isWantedBack = (metadata: Metadata | undefined): boolean =>
  Object.values(metadata ?? {}).some((values) =>
    Object.entries(values).some(
      ([key, value]) => key !== "itemId" && !(Array.isArray(value) && value.length === 0)
    )
  )

const typeOf = (type: "reasoning-start" | "reasoning-end" | "text-start" | "text-end"): Gathered["type"] =>
  type.startsWith("reasoning") ? "reasoning" : "text"
