/**
 * A run: the durable record of one trigger of an agent, and its lifecycle.
 *
 * One id lives across pauses, resumes and take-overs. `transitions` is the only
 * place that says which steps are legal; a terminal status never changes. The
 * database's verbs in `server/run` name the same states in their where clauses.
 */
import { Schema } from "effect"
import { GraphEvent } from "./graph.ts"
import { AgentId, BacktestId, GraphEventId, RunId, Timestamp, UserId, WebhookId } from "./ids.ts"
import { TriggeringOccurrence } from "./mcp-event.ts"
import { NamedObject } from "./named-object.ts"
import { Taint } from "./taint.ts"

export const RunStatus = Schema.Literals([
  "queued",
  "running",
  "completed",
  "failed",
  "cancelled",
  "paused",
  "skipped"
])
export type RunStatus = typeof RunStatus.Type

/** Every legal step, by the state that it leaves. */
export const transitions: Readonly<Record<RunStatus, ReadonlyArray<RunStatus>>> = {
  queued: ["running", "cancelled", "paused"], // paused = its time and grace are over
  // running again = taken over; queued = the provider of its model is away
  running: ["completed", "failed", "cancelled", "paused", "running", "queued"],
  paused: ["queued", "cancelled"],
  completed: [],
  failed: [],
  cancelled: [],
  skipped: []
}

export const isTerminal = (status: RunStatus): boolean => transitions[status].length === 0

/** The states from which a status may be reached. */
export const statesBefore = (status: RunStatus): ReadonlyArray<RunStatus> =>
  RunStatus.literals.filter((before) => transitions[before].includes(status))

/**
 * Why a run rests.
 *
 * **Details** `stepLimit`, `timeout`, `budget`: it has used its steps, its time, or the tokens or money of the run, the
 * agent or the chain, and goes on when somebody resumes it. `question`: it waits for a person's answer. `subAgents`: it
 * waits for runs that it spawned. `killSwitch`: somebody stopped all agents. `toolResult`: it waits for a client to answer
 * a tool call, and goes on by itself when the time for that is over.
 */
export const PauseReason = Schema.Literals([
  "stepLimit",
  "timeout",
  "budget",
  "question",
  "subAgents",
  "killSwitch",
  "toolResult"
])
export type PauseReason = typeof PauseReason.Type

/** Whether a person may let a run go on that rests for this reason; the others go on by themselves. */
export const isResumable = (reason: PauseReason): boolean =>
  reason === "stepLimit" || reason === "timeout" || reason === "budget"

/** Whether a run has ended, or goes on only when a person does something: then whoever waits for it has waited long enough. */
export const isAtRest = (run: {
  readonly status: RunStatus
  readonly pauseReason: PauseReason | null
}): boolean =>
  isTerminal(run.status) || (run.status === "paused" && !goesOnByItself.includes(run.pauseReason))

const goesOnByItself: ReadonlyArray<PauseReason | null> = ["subAgents", "killSwitch", "toolResult"]

/** Why a run failed, as one word; the sentence beside it says more. */
export const RunFailure = Schema.Literals([
  /** The model cannot be asked, or failed. */
  "model",
  /** The content filter of the model's provider stopped the answer, or the model refused to give one. */
  "contentFilter",
  /** The model gave neither words nor calls, twice in a row. */
  "emptyAnswer",
  /** The prompt could not be made. */
  "prompt",
  /** The guard flagged what the model was about to read. */
  "guard",
  /** It asked for the same again and again. */
  "doomLoop",
  /** What it writes is refused for good. */
  "refused",
  /** Its worker was alive, and for minutes nothing came: no part of an answer, no event, and no tool was at work. */
  "noProgress",
  /** Its workers died or broke too often, or none took it over. */
  "noWorker"
])
export type RunFailure = typeof RunFailure.Type

/** What woke the agent; templates see it as `event`, `events` and `input`. */
export const Trigger = Schema.Struct({
  type: Schema.Literals(["reaction", "schedule", "manual", "webhook", "context", "agent", "mcpEvent"]),
  input: Schema.optionalKey(Schema.Json),
  /** The instant a schedule was due. */
  dueAt: Schema.optionalKey(Timestamp),
  /** The newest of the missed instants that the run makes up for, beside its own. */
  madeUpUntil: Schema.optionalKey(Timestamp),
  /** What a webhook was given: its id, and the sender's own for the delivery. */
  delivery: Schema.optionalKey(Schema.Struct({ webhookId: WebhookId, id: Schema.String })),
  /** What foreign servers told and the run handles, oldest first. */
  mcpEvents: Schema.optionalKey(Schema.Array(TriggeringOccurrence)),
  /** The events of the graph that the run handles, oldest first. */
  events: Schema.optionalKey(
    Schema.Array(
      Schema.Struct({
        id: GraphEventId,
        type: Schema.String,
        /** Of which kind the thing is whose id stands in `objectId`; absent is an object. */
        entityType: Schema.optionalKey(GraphEvent.fields.entityType),
        objectId: Schema.String,
        objectType: Schema.String,
        version: Schema.Int
      })
    )
  )
})
export type Trigger = typeof Trigger.Type

/** Tokens of the model requests of a run, a step or an agent. */
export const Usage = Schema.Struct({
  inputTokens: Schema.Int,
  outputTokens: Schema.Int,
  /** Those of the input that the provider read from its cache; absent, as the next two, where there were none, or it does not say. */
  cachedInputTokens: Schema.optionalKey(Schema.Int),
  /** Those of the input that it wrote to its cache. */
  cacheWriteTokens: Schema.optionalKey(Schema.Int),
  /** Those of the output that the model thought. */
  reasoningTokens: Schema.optionalKey(Schema.Int)
})
export type Usage = typeof Usage.Type

export const noUsage: Usage = { inputTokens: 0, outputTokens: 0 }

export const addUsage = (a: Usage, b: Usage): Usage => ({
  inputTokens: a.inputTokens + b.inputTokens,
  outputTokens: a.outputTokens + b.outputTokens,
  ...usageDetails({
    cachedInputTokens: (a.cachedInputTokens ?? 0) + (b.cachedInputTokens ?? 0),
    cacheWriteTokens: (a.cacheWriteTokens ?? 0) + (b.cacheWriteTokens ?? 0),
    reasoningTokens: (a.reasoningTokens ?? 0) + (b.reasoningTokens ?? 0)
  })
})

type UsageDetails = Omit<Usage, "inputTokens" | "outputTokens">

/** The fields of a usage that say what its tokens were, where there were any. */
export const usageDetails = ({
  cachedInputTokens = 0,
  cacheWriteTokens = 0,
  reasoningTokens = 0
}: UsageDetails): UsageDetails => ({
  ...(cachedInputTokens === 0 ? {} : { cachedInputTokens }),
  ...(cacheWriteTokens === 0 ? {} : { cacheWriteTokens }),
  ...(reasoningTokens === 0 ? {} : { reasoningTokens })
})

/** What one run may use. Null is unbounded. */
export const RunLimits = Schema.Struct({
  maxSteps: Schema.NullOr(Schema.Int),
  timeoutMs: Schema.NullOr(Schema.Int),
  /** Tokens read and written, sub-agents included. */
  maxTokens: Schema.NullOr(Schema.Int),
  maxCostUsd: Schema.NullOr(Schema.Finite)
}).annotate({ identifier: "RunLimits" })
export type RunLimits = typeof RunLimits.Type

/** Limits that were set for one run and take precedence over its agent's (S002-R32); absent is the agent's. */
export type LimitOverrides = Partial<RunLimits>

/** What a queued run waits for besides a worker; it goes on by itself. */
export const RunWait = Schema.Struct({
  /** The provider of its model is away: it refuses requests, fails them or cannot be reached. */
  reason: Schema.Literal("provider"),
  /** When the outage began. */
  since: Timestamp,
  /** The last failure, in the provider's words where it gave some. */
  message: Schema.String,
  /** From when on a run asks the provider again, in the past while one does; null where the provider is back. */
  nextTryAt: Schema.NullOr(Timestamp)
}).annotate({ identifier: "RunWait" })
export type RunWait = typeof RunWait.Type

export const Run = Schema.Struct({
  id: RunId,
  agentId: AgentId,
  agentName: Schema.String,
  agentVersion: Schema.Int,
  status: RunStatus,
  pauseReason: Schema.NullOr(PauseReason),
  /** What it waits for while it is queued; null where it waits for nothing but a worker. */
  waitingFor: Schema.NullOr(RunWait),
  trigger: Trigger,
  /** The object of the first event that woke it; null where none did, or it was a relationship's. */
  subject: Schema.NullOr(NamedObject),
  /** What it said last; of one that was cancelled all that it had said, in order. */
  summary: Schema.NullOr(Schema.String),
  /** Whether the summary is only the beginning of what was said, as it says at its end; a list tells at most 20,000 characters. */
  isSummaryTruncated: Schema.Boolean,
  errorMessage: Schema.NullOr(Schema.String),
  /** Why it failed, as one word; null where it did not, or failed before servers said so. */
  failureReason: Schema.NullOr(RunFailure),
  /**
   * Why the provider ended the model's last answer; null before there is one.
   *
   * **Details** `stop` and `tool-calls`: the answer is whole. `length`: cut at a limit of output tokens. `content-filter`: stopped
   * by the provider's filter. `pause`: paused by the provider. Others as the provider gives them.
   */
  finishReason: Schema.NullOr(Schema.String),
  /** The person who cancelled it; null where nobody did, or the server did, which says in `errorMessage` why. */
  cancelledBy: Schema.NullOr(UserId),
  stepCount: Schema.Int,
  attempt: Schema.Int,
  usage: Usage,
  /** Dollars of its own model requests whose price is known. */
  costUsd: Schema.Finite,
  /** Tokens and dollars of the run and of every run below it. */
  total: Schema.Struct({ usage: Usage, costUsd: Schema.Finite }),
  limits: RunLimits,
  /** The run that spawned this one; null for one that began by itself. */
  parentRunId: Schema.NullOr(RunId),
  /** The backtest that it belongs to: then it did nothing but say what it would do. */
  backtestId: Schema.NullOr(BacktestId),
  /** How many runs spawned one another above this one. */
  spawnDepth: Schema.Int,
  model: Schema.NullOr(Schema.String),
  rootEventId: Schema.NullOr(GraphEventId),
  depth: Schema.Int,
  contextName: Schema.String,
  /** Whose that context is; null is the project's. To everybody else but an admin the run says no word of it. */
  owner: Schema.NullOr(UserId),
  /** What of untrusted sources its context was shown, the first few: where there is any, the run may only suggest. */
  taintedBy: Schema.Array(Taint),
  /** Tools of its agent's list that its model was not shown, since no server offered them then; [] before it asked one. */
  missingTools: Schema.Array(Schema.String),
  createdAt: Timestamp,
  startedAt: Schema.NullOr(Timestamp),
  completedAt: Schema.NullOr(Timestamp),
  durationMs: Schema.NullOr(Schema.Int)
}).annotate({ identifier: "Run" })
export type Run = typeof Run.Type
