/**
 * Runs and contexts: what agents did, step by step, and the log it is told in.
 */
import { MaxSteps, TimeoutMs } from "@tropism/domain/agent"
import { SpendingLimit } from "@tropism/domain/budget"
import { AgentId, ProjectId, RunId, TaskId, Timestamp, ToolCallId, UserId } from "@tropism/domain/ids"
import { Digest, FileName } from "@tropism/domain/attachment"
import {
  ContextEvent,
  ContextName,
  FileAttachmentEvent,
  RequestedToolCall,
  UserMessageEvent
} from "@tropism/domain/context-event"
import { Run, RunStatus, Trigger } from "@tropism/domain/run"
import { Schema } from "effect"
import { HttpApiEndpoint, HttpApiGroup, HttpApiSchema } from "effect/http-api"
import { Authorization, RequestJudgement } from "./authorization.ts"
import { Instant } from "./instant.ts"
import { anyOf, Page, PageQuery, told } from "./page.ts"
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
  /** `started`: its outcome is still to come; `unknown`: nobody knows it; `abandoned`: nobody wants it any more. */
  status: Schema.Literals(["started", "completed", "failed", "refused", "unknown", "abandoned"]),
  /** What the gate decided for a change; null for a tool that changes nothing. */
  decision: Schema.NullOr(Schema.Literals(["execute", "suggest", "refuse"])),
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
    Schema.isMaxLength(20_000),
    Schema.isPattern(/\S/, { expected: "some text that is not blank" })
  ),
  taskId: Schema.optional(Schema.NullOr(TaskId))
}).annotate({ identifier: "AnswerInput" })
export type AnswerInput = typeof AnswerInput.Type

const project = { projectId: ProjectId }
const run = { projectId: ProjectId, runId: RunId }
const context = { projectId: ProjectId, name: ContextName }

const After = {
  after: Schema.optional(Schema.FiniteFromString.check(Schema.isInt(), Schema.isGreaterThanOrEqualTo(0)))
}

/** Which runs a list shows: those of which all of these hold. */
export const RunQuery = {
  status: told(anyOf(RunStatus), "In one of these states, parted by commas"),
  agentId: Schema.optional(AgentId),
  parentRunId: told(RunId, "Spawned by this run"),
  trigger: told(anyOf(Trigger.fields.type), "Woken in one of these ways, parted by commas"),
  from: told(Instant, "Made at this instant or later"),
  to: told(Instant, "Made before this instant")
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
      success: Page(ContextEvent),
      error: [NotFound, InvalidInput]
    }),
    HttpApiEndpoint.get("toolCalls", "/runs/:runId/tool-calls", {
      params: run,
      query: PageQuery,
      success: Page(ToolCallRecord),
      error: [NotFound, InvalidInput]
    }),
    /** Decides once against completion: 409 when the run has ended already. */
    HttpApiEndpoint.post("cancel", "/runs/:runId/cancel", {
      params: run,
      success: Run,
      error: [NotFound, Forbidden, Conflict]
    }),
    /** Lets a run go on that its steps, its time or a budget stopped: steps and time count afresh. 409 for any other. */
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

export const Context = Schema.Struct({
  name: ContextName,
  agentId: AgentId,
  eventCount: Schema.Int,
  /** The context whose log it shares, and the number of the last event that it does; null for one that began by itself. */
  forkedFrom: Schema.NullOr(Schema.Struct({ name: ContextName, at: Schema.Int })),
  createdAt: Timestamp
}).annotate({
  identifier: "Context"
})
export type Context = typeof Context.Type

/** The state that the log folds to: what the agent knows, and how far it is (S004-R06…R11). */
export const ContextState = Schema.Struct({
  name: ContextName,
  nextEventNumber: Schema.Int,
  lastEventId: Schema.NullOr(Schema.String),
  currentTurnNumber: Schema.Int,
  /** The event that began the open turn; null while the agent is idle. */
  agentTurnStartedAtEventId: Schema.NullOr(Schema.String),
  isTurnDue: Schema.Boolean,
  isSessionOpen: Schema.Boolean,
  /** Which models answer from here on, and how long one request may take. */
  config: Schema.Struct({
    primary: Schema.NullOr(Schema.Struct({ provider: Schema.String, name: Schema.String })),
    fallback: Schema.NullOr(Schema.Struct({ provider: Schema.String, name: Schema.String })),
    timeoutMs: Schema.NullOr(Schema.Int)
  }),
  /** The messages that the model is shown next, in the form of a prompt. */
  messages: Schema.Array(Schema.Json),
  pendingCalls: Schema.Array(RequestedToolCall)
}).annotate({ identifier: "ContextState" })
export type ContextState = typeof ContextState.Type

/** Where a fork begins and who goes on with it. */
export const ForkInput = Schema.Struct({
  name: ContextName,
  /** The number of the last shared event; the last one where absent. */
  at: Schema.optional(Schema.NullOr(Schema.Int.check(Schema.isGreaterThanOrEqualTo(1)))),
  /** The agent of the same context where absent. */
  agentId: Schema.optional(Schema.NullOr(AgentId))
})

export const ContextInput = Schema.Struct({ name: ContextName, agentId: AgentId })

const triggersAgentTurn = Schema.optional(Schema.NullOr(Schema.Boolean))

/** Something said; it triggers a turn unless it says otherwise (S004-R21, R23). */
export const MessageInput = Schema.Struct({
  type: UserMessageEvent.fields.type,
  content: Schema.String.check(Schema.isBetweenLength(1, 100_000)),
  triggersAgentTurn
}).annotate({ identifier: "MessageInput" })

/** A file that was sent to `/attachments`, or one that the server fetches; it triggers a turn only where it says so (S004-R25). */
export const FileInput = Schema.Struct({
  type: FileAttachmentEvent.fields.type,
  attachment: Schema.optional(Schema.NullOr(Digest)),
  url: Schema.optional(Schema.NullOr(Schema.String.check(Schema.isBetweenLength(1, 2_000)))),
  fileName: Schema.optional(Schema.NullOr(FileName)),
  triggersAgentTurn
}).annotate({ identifier: "FileInput" })
export type FileInput = typeof FileInput.Type

/** An event that somebody adds. */
export const EventInput = Schema.Union([MessageInput, FileInput]).annotate({ identifier: "EventInput" })
export type EventInput = typeof EventInput.Type

export class ContextsApi extends HttpApiGroup.make("contexts")
  .add(
    HttpApiEndpoint.post("create", "/contexts", {
      params: project,
      payload: ContextInput,
      success: Context.pipe(HttpApiSchema.status(201)),
      error: [NotFound, Forbidden, Conflict, InvalidInput]
    }),
    HttpApiEndpoint.get("get", "/contexts/:name", { params: context, success: Context, error: NotFound }),
    HttpApiEndpoint.get("state", "/contexts/:name/state", {
      params: context,
      success: ContextState,
      error: NotFound
    }),
    /** A context whose log is this one's up to an event; nothing is copied, and each goes on by itself (S004-F11…F13). */
    HttpApiEndpoint.post("fork", "/contexts/:name/fork", {
      params: context,
      payload: ForkInput,
      success: Context.pipe(HttpApiSchema.status(201)),
      error: [NotFound, Forbidden, Conflict, InvalidInput]
    }),
    /** Ends the open turn; what was said of it stays in the log. 409 when no turn is open. */
    HttpApiEndpoint.post("interrupt", "/contexts/:name/interrupt", {
      params: context,
      success: HttpApiSchema.NoContent,
      error: [NotFound, Forbidden, Conflict]
    }),
    /** Answers as soon as the event is kept; what the agent does comes through the log (S004-R03). */
    HttpApiEndpoint.post("addEvent", "/contexts/:name/events", {
      params: context,
      payload: EventInput,
      success: HttpApiSchema.NoContent,
      error: [NotFound, Forbidden, Conflict, InvalidInput, TooManyRequests]
    }),
    HttpApiEndpoint.get("events", "/contexts/:name/events", {
      params: context,
      query: { ...PageQuery, ...After },
      success: Page(ContextEvent),
      error: [NotFound, InvalidInput]
    })
  )
  .prefix("/api/projects/:projectId")
  .middleware(RequestJudgement)
  .middleware(Authorization) {}
