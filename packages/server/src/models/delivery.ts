/**
 * What one attempt delivers of what its model says.
 *
 * Text goes on as it comes. Tool calls wait for the finish, so a broken answer
 * delivers none. Words that came before a fault are delivered before it. Nobody
 * is asked here and no time passes.
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
import { spokenThinking } from "./lenient-wire.ts"
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

/** A model that can be asked, and what it calls itself. */
export interface AskedModel {
  readonly provider: ModelProvider
  readonly name: string
  readonly price: ModelPrice | null
  readonly port: ModelPort
  /** Absent where there is no window. */
  readonly window?: KnownWindow
  /** Whose server answers, and where it lies; absent where there is none. */
  readonly where?: string
  /** Sends a request when its turn comes; absent where no server is asked. */
  readonly inTurn?: (
    parts: Stream.Stream<ModelPart, ModelFailure>,
    admitted: Effect.Effect<void, ModelFailure> | undefined
  ) => Stream.Stream<ModelPart, ModelFailure>
  /** What it is asked with each time. */
  readonly parameters?: Partial<Pick<ModelParameters, "temperature" | "maxOutputTokens" | "reasoning">>
}

export type Delivery = ReturnType<typeof makeDelivery>

/** Keeps what one attempt has delivered, and what of it is to come. */
export const makeDelivery = (model: AskedModel, request: ModelRequest) => {
  let saidChars = 0
  let textChars = 0
  let thoughtChars = 0
  const held: Array<ModelToolCall> = []
  const spoken = makeKeepableText()
  const measure = makeMeasure()
  const answerParts = makeAnswerParts()
  let outputBegan = false
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
    // Whoever decides about retries may wait for as long as it takes.
    const atMost = request.mayRetry
      ? ""
      : `, and this server waits at most ${seconds(modelLimits.retryAfterMaxMs)}`
    const tooLong = isTooLong ? ` (it asks to wait for ${seconds(pauseMs)}${atMost})` : ""
    const message = messageOf(error.reason)
    const reason = reasonOf(error.reason)
    const isWindow = mayBeWindow.has(reason) && saysTooLong(message)
    return failure(isWindow ? "tooLong" : reason, `${message}${tooLong}`, pauseMs)
  }
  /** Why an answer cannot go on with a part. */
  const faultOf = (part: Response.StreamPartEncoded): ModelFailure | undefined => {
    if (part.type === "error") return failure("cut", "The answer broke off")
    // Nothing was delivered yet, so that a fallback may answer.
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
    // The provider stopped the answer in the middle: nobody knows what these calls were to be.
    if (part.reason === "content-filter") held.splice(0)
    const last = held.at(-1)
    if (part.reason === "length" && last !== undefined && (last.fault !== null || isBare(last)))
      held[held.length - 1] = { ...last, fault: cutArguments }
    const { inputTokens, outputTokens } = part.usage
    // No prompt is empty, and who has spoken has used something: a provider that counts nothing does not count.
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
    /** Why nothing more is to come of the answer, once what came before is delivered. */
    broken: () => broken,
    /** What somebody should know of the answer, once. */
    warning: () => {
      const part = odd
      odd = undefined
      return part && tellOddUsage(model, part)
    },
    /** What of these parts is delivered now. */
    take: (parts: ReadonlyArray<Response.StreamPartEncoded>): ReadonlyArray<ModelPart> => {
      const told: Array<ModelPart> = []
      for (const part of parts) {
        broken = faultOf(part)
        if (broken !== undefined) break
        saidChars += charsIn(part)
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

/** The characters of a part that a model has spoken or thought. */
const charsIn = (part: Response.StreamPartEncoded): number => {
  if (part.type === "text-delta" || part.type === "reasoning-delta") return part.delta.length
  return part.type === "tool-call" ? part.name.length + (JSON.stringify(part.params)?.length ?? 0) : 0
}

/** What a model called that says it called a tool and named none: provider packages drop such a call, and it is answered like one of an unknown tool. */
const nameless: ModelToolCall = { type: "toolCall", id: "", name: "unnamed", arguments: {}, fault: null }

const cutArguments =
  "The answer reached its limit of output tokens before these arguments were complete, so send less at once"

/** Arguments of which nothing came read like `{}`. */
const isBare = (call: ModelToolCall): boolean =>
  isJsonObject(call.arguments) && Object.keys(call.arguments).length === 0

const textOf = (delta: string): ReadonlyArray<ModelPart> => (delta === "" ? [] : [{ type: "text", delta }])

const reportedUsage = ({ usage }: Response.FinishPartEncoded): Usage => ({
  inputTokens: usage.inputTokens.total ?? 0,
  outputTokens: usage.outputTokens.total ?? 0
})

/** Whether a provider counts what no count of tokens can be. */
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

/** As what a prompt beyond the window may be refused: OpenAI's limit by the minute calls it a request too large. */
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

/** The provider's own words where it gave some; effect's otherwise. */
const messageOf = (reason: AiError.AiErrorReason): string => {
  const told = "metadata" in reason ? reason.metadata["description"] : undefined
  if (typeof told === "string") return told
  return "description" in reason && reason.description !== undefined ? reason.description : reason.message
}

/** A length of time in words. */
export const seconds = (ms: number): string => `${Math.round(ms / 100) / 10} s`

// Gathers the parts of one answer in their order: reasoning, pieces of text, tool calls, each with its metadata.
//
// Providers refuse a second request without the reasoning or the signatures of the first. Their metadata is stored unchanged.

type Metadata = NonNullable<AnswerPart["metadata"]>

interface Gathered {
  readonly type: FinishedPart["type"]
  readonly id: string
  text: string
  chars: number
  metadata: Metadata
}

/** Gathers while an answer comes. */
const makeAnswerParts = () => {
  const gathered: Array<Gathered> = []
  let isTooLong = false
  let size = 0
  const partOf = (type: Gathered["type"], id: string): Gathered => {
    const open = gathered.findLast((part) => part.type === type && part.id === id)
    // A tool call or another block between two pieces begins a new part, whatever id a server gives them.
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
    /** The parts, if any of them has something that its model wants back. */
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

/** An item id alone is useless to a provider that was asked to store nothing, and so is an empty list. */
const isWantedBack = (metadata: Metadata | undefined): boolean =>
  Object.values(metadata ?? {}).some((values) =>
    Object.entries(values).some(
      ([key, value]) => key !== "itemId" && !(Array.isArray(value) && value.length === 0)
    )
  )

const typeOf = (type: "reasoning-start" | "reasoning-end" | "text-start" | "text-end"): Gathered["type"] =>
  type.startsWith("reasoning") ? "reasoning" : "text"
