/**
 * What is asked of a model, what comes back, and how it can go wrong.
 *
 * Text comes as it is spoken; tool calls come only when the answer is complete,
 * so a call that was cut off never reaches a tool. What was once delivered is
 * never taken back: a failure after it says `outputBegan`. This file holds the
 * words only; nothing here talks to a model.
 */
import type { AnswerPart } from "@tropism/domain/answer-part"
import type { Spoken } from "@tropism/domain/context-window"
import type { Message } from "@tropism/domain/message"
import type { ModelProvider, ReasoningEffort } from "@tropism/domain/model-config"
import type { ModelPrice } from "@tropism/domain/model-price"
import type { LeftOut } from "@tropism/domain/prompt-fit"
import type { Usage } from "@tropism/domain/run"
import { type Effect, Schema, type Stream } from "effect"
import type { Response, AiError, LanguageModel } from "effect/ai"

/** A tool as its MCP server lists it. */
export interface OfferedTool {
  readonly name: string
  readonly description?: string | undefined
  /** JSON Schema of the arguments. */
  readonly inputSchema: Readonly<Record<string, unknown>>
}

export interface ModelRequest {
  /** As the reducer makes them; a list that grew from that of an earlier request costs what is new. */
  readonly messages: ReadonlyArray<Message>
  readonly tools: ReadonlyArray<OfferedTool>
  /** `none` shows the tools and forbids their use: for the last request of a stopped turn. */
  readonly toolChoice?: "auto" | "none" | undefined
  /** How many requests of the run were answered before; a recorded run is answered by it. */
  readonly step?: number | undefined
  /** How much was said so far, in the prompt or before it; a script counts by it. */
  readonly spoken?: Spoken | undefined
  /** How long one attempt may take, where the context says so. */
  readonly timeoutMs?: number | undefined
  /** Told of each try when it is over, however it ended. */
  readonly tried?: ((each: ModelTry) => void) | undefined
  /** What does not fit the model's window, where something was left out. */
  readonly leftOut?: LeftOut | undefined
  /** Whether a failed try may be followed by another try of the same model; every retryable failure where it is absent. */
  readonly mayRetry?: ((failure: ModelFailure) => boolean) | undefined
  /** Checked when a request has waited for its turn, before it is sent: its provider may be away by now. */
  readonly admitted?: Effect.Effect<void, ModelFailure> | undefined
}

/** What a model is asked with, beside words and tools. */
export interface ModelParameters {
  readonly temperature: number | null
  readonly maxOutputTokens: number | null
  readonly reasoning?: ReasoningEffort
  readonly toolChoice: "auto" | "none"
  /** Absent where the model was shown everything. */
  readonly leftOut?: LeftOut
}

/** One try of a request: whom it asked, how it ended, and how long it took. */
export interface ModelTry {
  readonly provider: ModelProvider
  readonly name: string
  readonly parameters: ModelParameters
  readonly startedAtMs: number
  /** From the start to the first part; null when none came. */
  readonly firstOutputMs: number | null
  readonly durationMs: number
  /** The last part of an answer that is complete; null when there is none. */
  readonly finish: ModelFinish | null
  /** Why there is no answer; `aborted` when nobody wanted it any more. */
  readonly failure: { readonly reason: ModelFailureReason | "aborted"; readonly message: string } | null
}

export type ModelPart = { readonly type: "text"; readonly delta: string } | ModelToolCall | ModelFinish

/** A tool call that the model asks for; nobody has judged it yet. */
export interface ModelToolCall {
  readonly type: "toolCall"
  readonly id: string
  readonly name: string
  /** The decoded arguments; where there is a fault, the text as the model sent it. */
  readonly arguments: Schema.Json
  /** Why the arguments are not JSON that can be kept, in a sentence for the model. */
  readonly fault: string | null
}

/** A part of an answer as the log keeps it, with a call's place among the calls instead of its id. */
export type FinishedPart =
  | Exclude<AnswerPart, { readonly type: "toolCall" }>
  | (Omit<Extract<AnswerPart, { readonly type: "toolCall" }>, "id"> & { readonly call: number })

/** The last part of every answer that did not fail. */
export interface ModelFinish {
  readonly type: "finish"
  readonly reason: Response.FinishReason
  readonly usage: Usage
  /** Whether the server did not say what was used, so that it had to be guessed. */
  readonly isUsageEstimated: boolean
  /** In millionths of a dollar; null where the price of whoever answered is not known. */
  readonly costMicros: number | null
  /** What of that the input from the provider's cache cost. */
  readonly cachedCostMicros: number | null
  /** Who answered: the fallback, where it had to. */
  readonly provider: ModelProvider
  readonly name: string
  /** What it was not shown; absent where it was shown everything. */
  readonly leftOut?: LeftOut
  /** The parts in their order, where the model wants its reasoning or its metadata back. */
  readonly parts?: ReadonlyArray<FinishedPart>
  /** How many characters at the beginning of the delivered text turned out to be reasoning. */
  readonly thoughtChars?: number
}

/** What a model said to one request of an earlier run. */
export interface RecordedAnswer {
  readonly text: string
  readonly toolCalls: ReadonlyArray<{
    readonly id: string
    readonly name: string
    readonly arguments: Schema.Json
  }>
  /** Why it ended, where it was not whole. */
  readonly finishReason?: string | null
}

/** Reads the answer to a run's request, by its number from 0; null where there is none, or no such run in the project. */
export type ReadRecord = (runId: string, step: number) => Effect.Effect<RecordedAnswer | null>

/** One model that can be asked, with its retries and its fallback. */
export interface ResolvedModel {
  readonly provider: ModelProvider
  readonly name: string
  /** What it charges; null where nobody knows. The fallback has a price of its own, and each finish says what was spent. */
  readonly price: ModelPrice | null
  /** How many tools a request may have, the fallback's included; null is any number. */
  readonly toolsMax: number | null
  /** The servers and models that a request may reach, in order: what has one circuit breaker. Null where no server is asked. */
  readonly route: string | null
  /** Asks once; each part is delivered as it comes, the finish last. */
  readonly request: (request: ModelRequest) => Stream.Stream<ModelPart, ModelFailure>
}

export const ModelFailureReason = Schema.Literals([
  "rateLimited",
  "quota",
  "authentication",
  "refused",
  /** The prompt is beyond the model's window. */
  "tooLong",
  /** The provider's content filter let no word through. */
  "filtered",
  "unavailable",
  "timeout",
  "silent",
  "cut",
  "invalidResponse"
])
export type ModelFailureReason = typeof ModelFailureReason.Type

/** A model did not answer, or not to the end; `message` holds no key. */
export class ModelFailure extends Schema.TaggedError<ModelFailure>()("ModelFailure", {
  provider: Schema.String,
  model: Schema.String,
  reason: ModelFailureReason,
  message: Schema.String,
  /** Whether a part was delivered before: then nothing is tried again. */
  outputBegan: Schema.Boolean,
  isRetryable: Schema.Boolean,
  retryAfterMs: Schema.NullOr(Schema.Number),
  /** The route whose outage this is, where the run waits for its end instead of failing. */
  waitsFor: Schema.optional(Schema.String),
  /** Nobody was asked, since the outage is known. */
  wasHeldBack: Schema.optional(Schema.Boolean)
}) {}

const awayReasons: ReadonlySet<ModelFailureReason> = new Set(["rateLimited", "unavailable", "silent", "cut"])

/** Whether a failure means that the provider is away: the same request may succeed later. */
export const isAway = ({ reason }: ModelFailure): boolean => awayReasons.has(reason)

/** No model can be asked here; `message` says what to set. */
export class ModelUnavailable extends Schema.TaggedError<ModelUnavailable>()("ModelUnavailable", {
  agentName: Schema.String,
  message: Schema.String
}) {}

// What every model is to the engine: a request in, the parts of an answer out.
//
// Both are in effect's words: it is the side of its `LanguageModel` that a
// provider fills, so `LanguageModel.make` takes any of our models as it is. The
// engine asks this side, because the other looks through the whole prompt for
// approvals of tools and decodes each part in a queue of its own, for a loop that
// we switch off. What came from another machine is judged by whoever translates it.

/** A request in effect's words, with the counts that only models without a network answer by. */
export interface PortRequest extends Pick<LanguageModel.ProviderOptions, "prompt" | "tools" | "toolChoice"> {
  /** How many requests of the run were answered before; a recorded run is answered by it. */
  readonly step?: number | undefined
  /** How much was said so far, where the prompt may hold only the newest of it; a script counts by it. */
  readonly spoken?: Spoken | undefined
}

/** The parts of an answer as they come. */
export type PartStream = Stream.Stream<Response.StreamPartEncoded, AiError.AiError>

/** A model, of whatever provider. */
export type ModelPort = (request: PortRequest) => PartStream
