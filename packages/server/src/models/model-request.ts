/**
 * Types of a model request, its answer and its failures.
 *
 * Types only. Text is delivered as it streams. **Invariant**: tool calls are delivered only when the answer is complete, so a truncated
 * call never reaches a tool; and delivered parts are never withdrawn: a later failure has `outputBegan`.
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
  /** As the reducer builds them; a list that extends an earlier request's costs only its new items. */
  readonly messages: ReadonlyArray<Message>
  readonly tools: ReadonlyArray<OfferedTool>
  /** `none` declares the tools and forbids their use: for the last request of a stopped turn. */
  readonly toolChoice?: "auto" | "none" | undefined
  /** The number of answered requests of the run; a recorded run is replayed by it. */
  readonly step?: number | undefined
  /** The counts of the whole conversation, in the prompt or before it; scripts use them. */
  readonly spoken?: Spoken | undefined
  /** The time limit of one attempt, where the context sets one. */
  readonly timeoutMs?: number | undefined
  /** Called after each attempt, whatever its outcome. */
  readonly tried?: ((each: ModelTry) => void) | undefined
  /** What does not fit the model's window, where something was left out. */
  readonly leftOut?: LeftOut | undefined
  /** Whether a failed attempt may be followed by another of the same model; without it, after every retryable failure. */
  readonly mayRetry?: ((failure: ModelFailure) => boolean) | undefined
  /** Checked after the wait in the queue, before the request is sent: the provider may be down by then. */
  readonly admitted?: Effect.Effect<void, ModelFailure> | undefined
}

/** Parameters of a request beside messages and tools. */
export interface ModelParameters {
  readonly temperature: number | null
  readonly maxOutputTokens: number | null
  readonly reasoning?: ReasoningEffort
  readonly toolChoice: "auto" | "none"
  /** Absent where nothing was left out. */
  readonly leftOut?: LeftOut
}

/** One attempt of a request: model, outcome and duration. */
export interface ModelTry {
  readonly provider: ModelProvider
  readonly name: string
  readonly parameters: ModelParameters
  readonly startedAtMs: number
  /** Time from the start to the first part; null when none came. */
  readonly firstOutputMs: number | null
  readonly durationMs: number
  /** The finish of a complete answer; null without one. */
  readonly finish: ModelFinish | null
  /** Why there is no answer; `aborted` when the caller cancelled it. */
  readonly failure: { readonly reason: ModelFailureReason | "aborted"; readonly message: string } | null
}

export type ModelPart = { readonly type: "text"; readonly delta: string } | ModelToolCall | ModelFinish

/** A tool call by the model, not yet validated. */
export interface ModelToolCall {
  readonly type: "toolCall"
  readonly id: string
  readonly name: string
  /** The decoded arguments; with a fault, the text as the model sent it. */
  readonly arguments: Schema.Json
  /** Why the arguments are not storable JSON, as a sentence for the model. */
  readonly fault: string | null
}

/** A part of an answer as the log stores it, with a call's index instead of its id. */
export type FinishedPart =
  | Exclude<AnswerPart, { readonly type: "toolCall" }>
  | (Omit<Extract<AnswerPart, { readonly type: "toolCall" }>, "id"> & { readonly call: number })

/** The last part of every answer that did not fail. */
export interface ModelFinish {
  readonly type: "finish"
  readonly reason: Response.FinishReason
  readonly usage: Usage
  /** Whether the usage is an estimate, because the server did not report it. */
  readonly isUsageEstimated: boolean
  /** In millionths of a dollar; null where the answering model's price is unknown. */
  readonly costMicros: number | null
  /** The share of cached input in that cost. */
  readonly cachedCostMicros: number | null
  /** The answering provider: the fallback's, if it answered. */
  readonly provider: ModelProvider
  readonly name: string
  /** What was left out of the prompt; absent where nothing was. */
  readonly leftOut?: LeftOut
  /** The parts in order, where the model needs its reasoning or metadata back. */
  readonly parts?: ReadonlyArray<FinishedPart>
  /** The length of the delivered text's beginning that turned out to be reasoning. */
  readonly thoughtChars?: number
}

/** The answer to one request of an earlier run. */
export interface RecordedAnswer {
  readonly text: string
  readonly toolCalls: ReadonlyArray<{
    readonly id: string
    readonly name: string
    readonly arguments: Schema.Json
  }>
  /** Why it ended, where it was incomplete. */
  readonly finishReason?: string | null
}

/** Reads the answer to a run's request, by its number from 0; null where there is none, or no such run in the project. */
export type ReadRecord = (runId: string, step: number) => Effect.Effect<RecordedAnswer | null>

/** An available model, with its retries and its fallback. */
export interface ResolvedModel {
  readonly provider: ModelProvider
  readonly name: string
  /** Its price; null if unknown. The fallback has its own, and each finish reports the actual cost. */
  readonly price: ModelPrice | null
  /** The maximum number of tools in a request, the fallback's included; null is unlimited. */
  readonly toolsMax: number | null
  /** The servers and models that a request may reach, in order; they share a circuit breaker. Null where there is no server. */
  readonly route: string | null
  /** Sends one request; parts are delivered as they come, the finish last. */
  readonly request: (request: ModelRequest) => Stream.Stream<ModelPart, ModelFailure>
}

export const ModelFailureReason = Schema.Literals([
  "rateLimited",
  "quota",
  "authentication",
  "refused",
  /** The prompt exceeds the model's window. */
  "tooLong",
  /** The provider's content filter blocked the whole answer. */
  "filtered",
  "unavailable",
  "timeout",
  "silent",
  "cut",
  "invalidResponse"
])
export type ModelFailureReason = typeof ModelFailureReason.Type

/** A model did not answer, or not completely; `message` contains no key. */
export class ModelFailure extends Schema.TaggedError<ModelFailure>()("ModelFailure", {
  provider: Schema.String,
  model: Schema.String,
  reason: ModelFailureReason,
  message: Schema.String,
  /** Whether a part was delivered before the failure: then nothing is retried. */
  outputBegan: Schema.Boolean,
  isRetryable: Schema.Boolean,
  retryAfterMs: Schema.NullOr(Schema.Number),
  /** The route with the outage, where the run waits for it to end instead of failing. */
  waitsFor: Schema.optional(Schema.String),
  /** The request was not sent, because the outage is known. */
  wasHeldBack: Schema.optional(Schema.Boolean)
}) {}

const awayReasons: ReadonlySet<ModelFailureReason> = new Set(["rateLimited", "unavailable", "silent", "cut"])

/** Whether the provider is unavailable, so that the same request may succeed later. */
export const isAway = ({ reason }: ModelFailure): boolean => awayReasons.has(reason)

/** No model is available here; `message` explains what to configure. */
export class ModelUnavailable extends Schema.TaggedError<ModelUnavailable>()("ModelUnavailable", {
  agentName: Schema.String,
  message: Schema.String
}) {}

// The model port: a request in, the parts of an answer out.
//
// Both use effect's types on the provider's side of `LanguageModel`, so `LanguageModel.make` accepts our models. The engine uses this side
// directly, because the other scans the whole prompt for tool approvals and decodes each part in a queue of its own, for a loop that we do
// not use. Adapters validate what comes from other machines.

/** A request in effect's types, with counts for models without a network. */
export interface PortRequest extends Pick<LanguageModel.ProviderOptions, "prompt" | "tools" | "toolChoice"> {
  /** The number of answered requests of the run; a recorded run is replayed by it. */
  readonly step?: number | undefined
  /** The counts of the whole conversation, where the prompt may contain only its newest part; scripts use them. */
  readonly spoken?: Spoken | undefined
}

/** The parts of an answer as they come. */
export type PartStream = Stream.Stream<Response.StreamPartEncoded, AiError.AiError>

/** A model, of whatever provider. */
export type ModelPort = (request: PortRequest) => PartStream
