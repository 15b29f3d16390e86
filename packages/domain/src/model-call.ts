/**
 * What a model was asked in a run, what it answered, and what came of each step.
 *
 * A step is one request to a model with the tool calls that it asked for; a
 * request may take several tries. The exact words of a request are not kept
 * with it: they are the fold of the log up to the event that it names.
 */
import { Schema } from "effect"
import { RequestedToolCall } from "./context-event.ts"
import { Timestamp } from "./ids.ts"
import { ReasoningEffort } from "./model-config.ts"
import { ModelPrice } from "./model-price.ts"
import { LeftOut } from "./prompt-fit.ts"
import { Usage } from "./run.ts"

/** What a request was for: a step of the run, a guard's verdict on what the step reads, a summary of what its window lets go of, or notes for other contexts. */
export const ModelCallPurpose = Schema.Literals(["step", "guard", "summary", "notes"])
export type ModelCallPurpose = typeof ModelCallPurpose.Type

/** The step of a flow that was at work, and in which iteration, from 1. */
export const FlowStepAtWork = Schema.Struct({ name: Schema.String, iteration: Schema.Int }).annotate({
  identifier: "FlowStepAtWork"
})
export type FlowStepAtWork = typeof FlowStepAtWork.Type

/** One try of a request to a model. */
export const ModelCall = Schema.Struct({
  /** From 1 in each run, in the order in which the model was asked. */
  number: Schema.Int,
  purpose: ModelCallPurpose,
  /** The step that it was for or came before, from 1; tries of one request share it, and so does a request that was made again. */
  step: Schema.Int,
  /** The step of the run's flow that it was for; null where the flow is single. */
  flowStep: Schema.NullOr(FlowStepAtWork),
  /** From 1 in each request: the tries that went before brought no answer. */
  try: Schema.Int,
  provider: Schema.String,
  model: Schema.String,
  status: Schema.Literals(["answered", "failed"]),
  finishReason: Schema.NullOr(Schema.String),
  /** Why there is no answer, as `reason: sentence`. */
  error: Schema.NullOr(Schema.String),
  usage: Usage,
  /** Whether the model's server did not say what was used: then a token is guessed for every four characters. */
  isUsageEstimated: Schema.Boolean,
  /** Dollars; null when there was no answer or its price is not known. */
  costUsd: Schema.NullOr(Schema.Finite),
  startedAt: Timestamp,
  /** From the start to the first part of the answer. */
  firstOutputMs: Schema.NullOr(Schema.Int),
  durationMs: Schema.Int,
  /** The number of the last event of the run's context that the model was shown. */
  afterEvent: Schema.Int,
  /** The number of the event that has the answer. */
  answerEvent: Schema.NullOr(Schema.Int)
}).annotate({ identifier: "ModelCall" })
export type ModelCall = typeof ModelCall.Type

export const ShownTool = Schema.Struct({
  name: Schema.String,
  description: Schema.optionalKey(Schema.String),
  /** JSON Schema of the arguments. */
  inputSchema: Schema.Json
}).annotate({ identifier: "ShownTool" })

/** A try with exactly what the model was shown and what it answered. */
export const ModelExchange = Schema.Struct({
  ...ModelCall.fields,
  request: Schema.Struct({
    /** In the order in which the model read them; a tool's result follows its call. */
    messages: Schema.Array(Schema.Json),
    tools: Schema.Array(ShownTool),
    parameters: Schema.Struct({
      temperature: Schema.NullOr(Schema.Finite),
      maxOutputTokens: Schema.NullOr(Schema.Int),
      /** Absent where the definition says nothing of it. */
      reasoning: Schema.optionalKey(ReasoningEffort),
      toolChoice: Schema.Literals(["auto", "none"]),
      /** What was left out of the messages, since the window is too small; absent where the model was shown everything. */
      leftOut: Schema.optionalKey(LeftOut)
    })
  }),
  /** Null when there was no answer. */
  response: Schema.NullOr(Schema.Struct({ text: Schema.String, toolCalls: Schema.Array(RequestedToolCall) }))
}).annotate({ identifier: "ModelExchange" })
export type ModelExchange = typeof ModelExchange.Type

/** A request to a model that is under way, or was when its run was ended from outside: made again from the log. */
export const OpenRequest = Schema.Struct({
  isUnderWay: Schema.Boolean,
  /** The step that its answer makes, or would have made. */
  step: Schema.Int,
  /** The number of the last event of the run's context that the model is shown. */
  afterEvent: Schema.Int,
  /** provider:name of whoever is asked first; null where no model can be asked here any more. */
  model: Schema.NullOr(Schema.String),
  /** What that model charges; null where nobody knows. */
  price: Schema.NullOr(ModelPrice),
  /** In the order in which the model reads them. */
  messages: Schema.Array(Schema.Json),
  /** Those of the run's request before, which are the same unless its flow went on; null of a first request. */
  tools: Schema.NullOr(Schema.Array(ShownTool)),
  toolChoice: Schema.Literals(["auto", "none"]),
  /** A token for every four characters of the messages. */
  estimatedInputTokens: Schema.Int,
  /** The beginning of what the model has said of the answer, as far as it is kept. */
  said: Schema.String
}).annotate({ identifier: "OpenRequest" })
export type OpenRequest = typeof OpenRequest.Type

/** A tool call of a step and how far it has come. */
export const StepCall = Schema.Struct({
  callId: Schema.String,
  tool: Schema.String,
  /** `pending`: not made yet, or under way; the others as in the record of a tool call. */
  status: Schema.Literals(["pending", "started", "completed", "failed", "refused", "unknown", "abandoned"]),
  startedAt: Schema.NullOr(Timestamp),
  completedAt: Schema.NullOr(Timestamp),
  durationMs: Schema.NullOr(Schema.Int)
}).annotate({ identifier: "StepCall" })
export type StepCall = typeof StepCall.Type

/** One step of a run: who was asked, what it cost, and what came of the calls. */
export const RunStep = Schema.Struct({
  number: Schema.Int,
  /** provider:name of whoever was asked last. */
  model: Schema.String,
  /** The numbers of its model calls. */
  modelCalls: Schema.Array(Schema.Int),
  /** The step of the run's flow that it was for; null where the flow is single. */
  flowStep: Schema.NullOr(FlowStepAtWork),
  status: Schema.Literals(["answered", "failed"]),
  /** Why the last try brought no answer. */
  error: Schema.NullOr(Schema.String),
  /** The beginning of what the model said. */
  text: Schema.String,
  usage: Usage,
  /** Dollars; null when the price is not known. */
  costUsd: Schema.NullOr(Schema.Finite),
  startedAt: Timestamp,
  /** How long the model took, all tries together. */
  modelMs: Schema.Int,
  toolCalls: Schema.Array(StepCall)
}).annotate({ identifier: "RunStep" })
export type RunStep = typeof RunStep.Type
