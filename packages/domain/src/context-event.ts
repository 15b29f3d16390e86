/**
 * The events of a context: agent events are all you need.
 *
 * A context is one log. Ids are `{agentName}:{counter}`, contiguous, given by
 * the append transaction and by nobody else (S004-R14). Text deltas are
 * ephemeral: they have ids of their own kind, are shown live and never counted
 * or kept (S004-R26). A type this version does not know is kept and skipped.
 */
import { AnswerPart } from "./answer-part.ts"
import { Option, Schema } from "effect"
import { Digest, MimeType, Picture } from "./attachment.ts"
import {
  ComparisonStartedEvent,
  DefineToolEvent,
  DefineWorkflowEvent,
  SetGuardEvent,
  SetLlmConfigEvent,
  SetMemoryConfigEvent,
  SetRacingEvent,
  SetReducerEvent,
  SetRetryConfigEvent,
  SetTimeoutEvent
} from "./config-event.ts"
import { Coerced } from "./coerced.ts"
import { added, base, ContextEventId, ContextName, WaitsFor } from "./event-base.ts"
import { HistoryGivenEvent } from "./given-history.ts"
import { RunId, Timestamp, UserId } from "./ids.ts"
import { LeftOut } from "./prompt-fit.ts"
import { RunFailure, Usage } from "./run.ts"

export { ContextEventId, contextEventId, ContextName, eventNumber } from "./event-base.ts"

const Text = Schema.String

export class SessionStartedEvent extends Schema.Class<SessionStartedEvent>("SessionStartedEvent")({
  type: Schema.tag("SessionStartedEvent"),
  ...base
}) {}

export class SessionEndedEvent extends Schema.Class<SessionEndedEvent>("SessionEndedEvent")({
  type: Schema.tag("SessionEndedEvent"),
  ...base,
  /** The actor that began it died; whoever came after it says so. Absent where it ended by itself. */
  reason: Schema.optionalKey(Schema.Literals(["crash"]))
}) {}

/** The context shares the log of another up to an event; its own begins here (S004-F11, F12). */
export class ContextForkedEvent extends Schema.Class<ContextForkedEvent>("ContextForkedEvent")({
  type: Schema.tag("ContextForkedEvent"),
  ...base,
  from: ContextName,
  /** The number of the last shared event. */
  at: Schema.Int
}) {}

/** Sets the behaviour of the model. */
export class SystemPromptEvent extends Schema.Class<SystemPromptEvent>("SystemPromptEvent")({
  type: Schema.tag("SystemPromptEvent"),
  ...base,
  ...added,
  content: Text
}) {}

export class UserMessageEvent extends Schema.Class<UserMessageEvent>("UserMessageEvent")({
  type: Schema.tag("UserMessageEvent"),
  ...base,
  ...added,
  content: Text
}) {}

/** A file for the agent; its bytes lie under their digest (S004-R25). */
export class FileAttachmentEvent extends Schema.Class<FileAttachmentEvent>("FileAttachmentEvent")({
  type: Schema.tag("FileAttachmentEvent"),
  ...base,
  ...added,
  /** Where it came from: somebody sent it, or it was fetched. */
  source: Schema.Union([
    Schema.Struct({ type: Schema.Literal("upload") }),
    Schema.Struct({ type: Schema.Literal("url"), url: Schema.String })
  ]),
  mimeType: MimeType,
  fileName: Schema.NullOr(Schema.String),
  digest: Digest,
  sizeBytes: Schema.Int,
  /** Nobody vouches for what it says; absent is false. */
  untrusted: Schema.optionalKey(Schema.Boolean)
}) {}

export const RequestedToolCall = Schema.Struct({
  id: Schema.String,
  name: Schema.String,
  arguments: Schema.Json,
  /** Why the arguments are not what a tool can be given; they are text then, as the model sent it or its beginning. */
  fault: Schema.optionalKey(Schema.String)
})

/** The final answer of one model request: a step of a run. */
export class AssistantMessageEvent extends Schema.Class<AssistantMessageEvent>("AssistantMessageEvent")({
  type: Schema.tag("AssistantMessageEvent"),
  ...base,
  content: Text,
  toolCalls: Schema.Array(RequestedToolCall),
  runId: RunId,
  model: Schema.String,
  usage: Usage,
  /** All parts in order; present only if the answer has reasoning or provider metadata. */
  parts: Schema.optionalKey(Schema.Array(AnswerPart)),
  /** Why the provider ended the answer, where it is not whole: `length`, `pause`, `content-filter`; any other of an empty one. */
  finishReason: Schema.optionalKey(Text),
  /** What the model was not shown, since its window is too small; absent where it was shown everything. */
  leftOut: Schema.optionalKey(LeftOut),
  /** It goes on with the words of the answer before; absent is false. */
  continues: Schema.optionalKey(Schema.Boolean)
}) {}

/** Why a run is asked to come to an end by itself. */
export const SoftStopReason = Schema.Literals(["stepLimit", "timeout"])
export type SoftStopReason = typeof SoftStopReason.Type

/** The run has used its steps or its time: one last request follows, with no tools (S002-R20, R26). */
export class SoftStopEvent extends Schema.Class<SoftStopEvent>("SoftStopEvent")({
  type: Schema.tag("SoftStopEvent"),
  ...base,
  reason: SoftStopReason,
  content: Text,
  /** The run that is stopped; absent in logs of an earlier version. */
  runId: Schema.optionalKey(RunId),
  /** What the model had said of the answer that was broken off. */
  partialText: Schema.optionalKey(Text)
}) {}

/** A step of a flow begins; its rendered prompt is what the model reads. */
export class FlowStepStartedEvent extends Schema.Class<FlowStepStartedEvent>("FlowStepStartedEvent")({
  type: Schema.tag("FlowStepStartedEvent"),
  ...base,
  step: Text,
  /** The step's place in its iteration, from 0. */
  index: Schema.Int,
  /** From 1. */
  iteration: Schema.Int,
  content: Text
}) {}

/** The agent goes round in circles: the model is told so. */
export class LoopWarningEvent extends Schema.Class<LoopWarningEvent>("LoopWarningEvent")({
  type: Schema.tag("LoopWarningEvent"),
  ...base,
  reason: Schema.Literals(["cycle", "errorStreak"]),
  content: Text
}) {}

/** The answer reached the provider's limit of output tokens: the model is told to go on with it. */
export class ContinuationRequestedEvent extends Schema.Class<ContinuationRequestedEvent>(
  "ContinuationRequestedEvent"
)({
  type: Schema.tag("ContinuationRequestedEvent"),
  ...base,
  content: Text
}) {}

/** Somebody wants the open turn to end here; what was said of it stays (S004-R38). */
export class InterruptRequestedEvent extends Schema.Class<InterruptRequestedEvent>("InterruptRequestedEvent")(
  {
    type: Schema.tag("InterruptRequestedEvent"),
    ...base,
    by: Text
  }
) {}

/** Somebody let a paused run go on; `content` is what the model reads. */
export class RunResumedEvent extends Schema.Class<RunResumedEvent>("RunResumedEvent")({
  type: Schema.tag("RunResumedEvent"),
  ...base,
  by: Text,
  content: Text,
  /** Whose words these are; absent where only the server speaks. */
  userId: Schema.optionalKey(UserId)
}) {}

export class AgentTurnStartedEvent extends Schema.Class<AgentTurnStartedEvent>("AgentTurnStartedEvent")({
  type: Schema.tag("AgentTurnStartedEvent"),
  ...base,
  turnNumber: Schema.Int
}) {}

export class AgentTurnCompletedEvent extends Schema.Class<AgentTurnCompletedEvent>("AgentTurnCompletedEvent")(
  {
    type: Schema.tag("AgentTurnCompletedEvent"),
    ...base,
    turnNumber: Schema.Int,
    durationMs: Schema.Int
  }
) {}

export class AgentTurnInterruptedEvent extends Schema.Class<AgentTurnInterruptedEvent>(
  "AgentTurnInterruptedEvent"
)({
  type: Schema.tag("AgentTurnInterruptedEvent"),
  ...base,
  turnNumber: Schema.Int,
  reason: Schema.Literals([
    "crash",
    "message",
    "user",
    "cancelled",
    "stepLimit",
    "timeout",
    "budget",
    "forked"
  ]),
  /** What the model had said of the answer that was broken off. */
  partialText: Schema.optionalKey(Text)
}) {}

/** What brought a turn down, for those who tell people of it. */
export const TurnFailure = RunFailure.pick([
  "model",
  "contentFilter",
  "emptyAnswer",
  "prompt",
  "guard",
  "doomLoop",
  "refused",
  "noProgress"
])
export type TurnFailure = typeof TurnFailure.Type

export class AgentTurnFailedEvent extends Schema.Class<AgentTurnFailedEvent>("AgentTurnFailedEvent")({
  type: Schema.tag("AgentTurnFailedEvent"),
  ...base,
  turnNumber: Schema.Int,
  error: Text,
  /** Absent in logs of an earlier version, and where nobody was left to work on the run. */
  reason: Schema.optionalKey(TurnFailure)
}) {}

export class ToolCallStartedEvent extends Schema.Class<ToolCallStartedEvent>("ToolCallStartedEvent")({
  type: Schema.tag("ToolCallStartedEvent"),
  ...base,
  callId: Schema.String,
  tool: Schema.String,
  arguments: Schema.Json,
  /** What the model had sent, where its arguments nearly fitted and were put right. */
  coerced: Schema.optionalKey(Coerced),
  /** Where `tool` is a name that the context defines: the tool that was called, and with what (S004-F02). */
  standsFor: Schema.optionalKey(Schema.Struct({ tool: Schema.String, arguments: Schema.Json })),
  /** Who brings the outcome, where it comes later: a run that was spawned, a person who was asked, or a client (`ToolResultEvent`). */
  waitsFor: Schema.optionalKey(WaitsFor)
}) {}

export class ToolCallCompletedEvent extends Schema.Class<ToolCallCompletedEvent>("ToolCallCompletedEvent")({
  type: Schema.tag("ToolCallCompletedEvent"),
  ...base,
  callId: Schema.String,
  tool: Schema.String,
  result: Schema.Json,
  /** Pictures of the result; their bytes lie under their digests, as those of attached files. */
  pictures: Schema.optionalKey(Schema.Array(Picture)),
  /** Who answered, where a person or a client was asked; absent for other tools, and in logs of an earlier version (S003-R44). */
  userId: Schema.optionalKey(UserId)
}) {}

/** The tool answered with an error, or the call was refused; `error` is what the model reads. */
export class ToolCallFailedEvent extends Schema.Class<ToolCallFailedEvent>("ToolCallFailedEvent")({
  type: Schema.tag("ToolCallFailedEvent"),
  ...base,
  callId: Schema.String,
  tool: Schema.String,
  error: Schema.Json,
  /** Who sent the error, where a client answered. */
  userId: Schema.optionalKey(UserId)
}) {}

/** What lay before this is shown no more, and a summary tells it from here on; the log keeps it (S004-F10). */
export class ContextSummarizedEvent extends Schema.Class<ContextSummarizedEvent>("ContextSummarizedEvent")({
  type: Schema.tag("ContextSummarizedEvent"),
  ...base,
  /** What the model made of the summary before and of the messages; null where it failed, and the summary before stands. */
  content: Schema.NullOr(Text),
  /** Why there is no new summary. */
  error: Schema.optionalKey(Text),
  /** How many messages it stands for, counted from the first of the context. */
  messages: Schema.Int,
  runId: RunId,
  model: Schema.String,
  usage: Usage
}) {}

/** What the context was about so far, for the agent's other contexts; its own model is not shown it (S004-F04). */
export class ContextNotedEvent extends Schema.Class<ContextNotedEvent>("ContextNotedEvent")({
  type: Schema.tag("ContextNotedEvent"),
  ...base,
  /** What a model made of the notes before and of the messages since; null where it failed, and the notes before stand. */
  content: Schema.NullOr(Text),
  /** Why there are no new notes. */
  error: Schema.optionalKey(Text),
  /** How many messages there were, counted from the first of the context. */
  messages: Schema.Int,
  runId: RunId,
  model: Schema.String,
  usage: Usage
}) {}

/** What the agent was reminded of from its earlier contexts; `content` is what the model reads (S004-F04). */
export class MemoryRecalledEvent extends Schema.Class<MemoryRecalledEvent>("MemoryRecalledEvent")({
  type: Schema.tag("MemoryRecalledEvent"),
  ...base,
  content: Text,
  passages: Schema.Array(Schema.Struct({ context: ContextName, eventId: ContextEventId }))
}) {}

/** What the guard said of what the model was about to read (S004-F06). */
export class GuardVerdictEvent extends Schema.Class<GuardVerdictEvent>("GuardVerdictEvent")({
  type: Schema.tag("GuardVerdictEvent"),
  ...base,
  isFlagged: Schema.Boolean,
  /** Empty where nothing is wrong. */
  reason: Text,
  /** The beginning of what it said, word for word. */
  content: Text,
  /** How many messages are judged now, counted from the first of the context. */
  messages: Schema.Int,
  runId: RunId,
  model: Schema.String,
  /** What the guard used, and the answer that was thrown away, if it was complete by then. */
  usage: Usage
}) {}

export const ContextEvent = Schema.Union([
  SessionStartedEvent,
  SessionEndedEvent,
  ContextForkedEvent,
  HistoryGivenEvent,
  SystemPromptEvent,
  UserMessageEvent,
  FileAttachmentEvent,
  AssistantMessageEvent,
  SetLlmConfigEvent,
  SetTimeoutEvent,
  SetRetryConfigEvent,
  SetRacingEvent,
  SetGuardEvent,
  SetMemoryConfigEvent,
  SetReducerEvent,
  DefineToolEvent,
  DefineWorkflowEvent,
  ComparisonStartedEvent,
  ContextSummarizedEvent,
  ContextNotedEvent,
  MemoryRecalledEvent,
  GuardVerdictEvent,
  SoftStopEvent,
  FlowStepStartedEvent,
  LoopWarningEvent,
  ContinuationRequestedEvent,
  RunResumedEvent,
  InterruptRequestedEvent,
  AgentTurnStartedEvent,
  AgentTurnCompletedEvent,
  AgentTurnInterruptedEvent,
  AgentTurnFailedEvent,
  ToolCallStartedEvent,
  ToolCallCompletedEvent,
  ToolCallFailedEvent
])
export type ContextEvent = typeof ContextEvent.Type

/** An event of a type that this version does not know. */
export class UnknownEvent extends Schema.Class<UnknownEvent>("UnknownEvent")({
  type: Schema.String,
  ...base
}) {
  readonly isUnknown = true
}

/** An event as a log has it, of this version or of a newer one. */
export const LoggedEvent = Schema.Union([ContextEvent, UnknownEvent]).annotate({ identifier: "LoggedEvent" })
export type LoggedEvent = typeof LoggedEvent.Type

/** An event before the log has given it an id, a time and a parent. */
export type NewEvent = ContextEvent extends infer E ? (E extends ContextEvent ? Draft<E> : never) : never
type Draft<E extends ContextEvent> = Omit<
  typeof ContextEvent.Encoded & { type: E["type"] },
  "id" | "timestamp" | "agentName" | "parentEventId" | "triggersAgentTurn"
> & {
  /** False when absent. */
  readonly triggersAgentTurn?: boolean
  /** Overrides the rule that the open turn, else the last event, is the parent. */
  readonly parentEventId?: ContextEventId
}

const decodeKnown = Schema.decodeUnknownOption(ContextEvent)
const decodeUnknown = Schema.decodeUnknownSync(UnknownEvent)

/** Decodes one entry of a log; never fails for a type of a newer version. */
export const decodeEvent = (json: unknown): LoggedEvent =>
  Option.getOrElse(decodeKnown(json), () => decodeUnknown(json))

/** A piece of an answer that is being written; shown live, never kept (S004-R26). */
export const TextDeltaEvent = Schema.Struct({
  type: Schema.tag("TextDeltaEvent"),
  /** `{agentName}:{n}.d{k}`: the k-th piece after event n. */
  id: Schema.String,
  timestamp: Timestamp,
  agentName: ContextName,
  parentEventId: Schema.NullOr(ContextEventId),
  triggersAgentTurn: Schema.Literal(false),
  delta: Schema.String
})
export type TextDeltaEvent = typeof TextDeltaEvent.Type
