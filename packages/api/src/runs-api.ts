/**
 * Runs: what agents did, step by step.
 */
import { MaxSteps, TimeoutMs } from "@tropism/domain/agent"
import { SpendingLimit } from "@tropism/domain/budget"
import {
  AgentId,
  BacktestId,
  ProjectId,
  PromotionId,
  RunId,
  TaskId,
  Timestamp,
  ToolCallId,
  UserId
} from "@tropism/domain/ids"
import { LoggedEvent } from "@tropism/domain/context-event"
import { Replay } from "@tropism/domain/replay"
import { Run, RunStatus, Trigger } from "@tropism/domain/run"
import { Coerced } from "@tropism/domain/coerced"
import { questionBounds } from "@tropism/domain/task"
import { Schema } from "effect"
import { HttpApiEndpoint, HttpApiGroup } from "effect/http-api"
import { alsoStreamed } from "./also-streamed.ts"
import { Authorization, RequestJudgement } from "./authorization.ts"
import { Instant } from "./instant.ts"
import { After, anyOf, Page, PageQuery, told } from "./page.ts"
import { Conflict, Forbidden, InvalidInput, NotFound, TooManyRequests } from "./problems.ts"

/** One tool call as it was recorded: who, what, when, with what outcome. */
export const ToolCallRecord = Schema.Struct({
  id: ToolCallId,
  runId: Schema.NullOr(RunId),
  agentId: Schema.NullOr(AgentId),
  userId: Schema.NullOr(UserId),
  contextName: Schema.NullOr(Schema.String),
  callId: Schema.String,
  tool: Schema.String,
  arguments: Schema.Json,
  /** What the model had sent, and what of it was put right, where it nearly fitted the tool's schema; null where it is `arguments`. */
  coerced: Schema.NullOr(Coerced),
  /** `started`: its outcome is still to come; `unknown`: nobody knows it; `abandoned`: nobody wants it any more. */
  status: Schema.Literals(["started", "completed", "failed", "refused", "unknown", "abandoned"]),
  /** What the gate decided for a change; null for a tool that changes nothing. */
  decision: Schema.NullOr(Schema.Literals(["execute", "suggest", "refuse"])),
  /** The promotion that let a hybrid agent do it without being sure, or without saying so; null where none was needed. */
  promotionId: Schema.NullOr(PromotionId),
  result: Schema.Json,
  createdAt: Timestamp,
  /** When its outcome was there; null before that, and of a call of an earlier version. */
  completedAt: Schema.NullOr(Timestamp),
  durationMs: Schema.NullOr(Schema.Int)
}).annotate({ identifier: "ToolCallRecord" })
export type ToolCallRecord = typeof ToolCallRecord.Type

/** Accepts null as absent. */
const opt = <S extends Schema.Top>(schema: S) => Schema.optional(Schema.NullOr(schema))

/** What somebody says to a paused run, and what it may use from now on; absent is as before. */
export const ResumeInput = Schema.Struct({
  message: opt(Schema.String.check(Schema.isBetweenLength(1, 100_000))),
  maxSteps: opt(MaxSteps),
  timeoutMs: opt(TimeoutMs),
  ...SpendingLimit.fields
}).annotate({ identifier: "ResumeInput" })
export type ResumeInput = typeof ResumeInput.Type

/** A person's answer to what an agent asked; `taskId` says which question where several wait. */
export const AnswerInput = Schema.Struct({
  answer: Schema.String.check(
    Schema.isMaxLength(questionBounds.answerMaxChars),
    Schema.isPattern(/\S/, { expected: "some text that is not blank" })
  ),
  taskId: Schema.optional(Schema.NullOr(TaskId))
}).annotate({ identifier: "AnswerInput" })
export type AnswerInput = typeof AnswerInput.Type

const project = { projectId: ProjectId }
const run = { projectId: ProjectId, runId: RunId }

/** Which runs a list shows: those of which all of these hold. */
export const RunQuery = {
  status: told(anyOf(RunStatus), "In one of these states, parted by commas"),
  agentId: told(AgentId, "Of this agent"),
  parentRunId: told(RunId, "Spawned by this run"),
  backtestId: told(BacktestId, "Of this backtest; without it, only runs that work for real"),
  trigger: told(anyOf(Trigger.fields.type), "Woken in one of these ways, parted by commas"),
  from: told(Instant, "Made at this instant or later"),
  to: told(Instant, "Made before this instant"),
  query: told(
    Schema.String.check(Schema.isMaxLength(500)),
    "Words, or beginnings of words, that all occur in what the run ended with, its summary or its error; at most 500 characters"
  )
}

export class RunsApi extends HttpApiGroup.make("runs")
  .add(
    HttpApiEndpoint.get("list", "/runs", {
      params: project,
      query: { ...PageQuery, ...RunQuery },
      success: Page(Run),
      error: [NotFound, InvalidInput]
    }),
    HttpApiEndpoint.get("get", "/runs/:runId", { params: run, success: Run, error: NotFound }),
    /** The run's context events: a JSON page, or live with `Accept: text/event-stream`, ids being event numbers. */
    HttpApiEndpoint.get("events", "/runs/:runId/events", {
      params: run,
      query: { ...PageQuery, ...After },
      success: Page(LoggedEvent),
      error: [NotFound, InvalidInput]
    }).annotateMerge(alsoStreamed),
    HttpApiEndpoint.get("toolCalls", "/runs/:runId/tool-calls", {
      params: run,
      query: PageQuery,
      success: Page(ToolCallRecord),
      error: [NotFound, InvalidInput]
    }),
    /** Replays the log that the run wrote to: the whole context. */
    HttpApiEndpoint.get("replay", "/runs/:runId/replay", { params: run, success: Replay, error: NotFound }),
    /** Decides once against completion: 409 when the run has ended already. */
    HttpApiEndpoint.post("cancel", "/runs/:runId/cancel", {
      params: run,
      success: Run,
      error: [NotFound, Forbidden, Conflict]
    }),
    /** Lets a run go on that its steps, its time or a budget stopped, and answers it as it is then, queued: steps and time count afresh. 409 for any other. */
    HttpApiEndpoint.post("resume", "/runs/:runId/resume", {
      params: run,
      payload: ResumeInput,
      success: Run,
      error: [NotFound, Forbidden, Conflict, InvalidInput, TooManyRequests]
    }),
    /** Answers a question of the run, which goes on: 409 when it is answered already, 422 when the answer is none of its options. */
    HttpApiEndpoint.post("answer", "/runs/:runId/answer", {
      params: run,
      payload: AnswerInput,
      success: Run,
      error: [NotFound, Forbidden, Conflict, InvalidInput]
    })
  )
  .prefix("/api/projects/:projectId")
  .middleware(RequestJudgement)
  .middleware(Authorization) {}
