/**
 * Contexts: one log each, in which people speak with an agent and set how it works.
 */
import { Digest, FileName, MimeType } from "@tropism/domain/attachment"
import { Taint } from "@tropism/domain/taint"
import { configFields, workflowInputFields } from "@tropism/domain/config-event"
import {
  ContextEventId,
  ContextName,
  FileAttachmentEvent,
  LoggedEvent,
  RequestedToolCall,
  SystemPromptEvent,
  UserMessageEvent
} from "@tropism/domain/context-event"
import { FlowStep, FlowType } from "@tropism/domain/flow"
import { AgentId, ProjectId, Timestamp, UserId } from "@tropism/domain/ids"
import { ReducerConfig } from "@tropism/domain/prompt-window"
import { Replay } from "@tropism/domain/replay"
import { Schema } from "effect"
import { HttpApiEndpoint, HttpApiGroup, HttpApiSchema } from "effect/http-api"
import { alsoUnchanged } from "./also-unchanged.ts"
import { alsoStreamed } from "./also-streamed.ts"
import { Authorization, RequestJudgement } from "./authorization.ts"
import { After, Page, PageQuery, told } from "./page.ts"
import { Conflict, Forbidden, InvalidInput, NotFound, TooManyRequests } from "./problems.ts"

const project = { projectId: ProjectId }
const context = { projectId: ProjectId, name: ContextName }

export const Context = Schema.Struct({
  name: ContextName,
  agentId: AgentId,
  eventCount: Schema.Int,
  /** The context whose log it shares, and the number of the last event that it does; null for one that began by itself. */
  forkedFrom: Schema.NullOr(Schema.Struct({ name: ContextName, at: Schema.Int })),
  /** Whether the agent is at work in it. */
  isTurnOpen: Schema.Boolean,
  /** What of untrusted sources it was shown, the first few: where there is any, its agent may only suggest. */
  taintedBy: Schema.Array(Taint),
  /** Whose it is; null is the project's, in which everybody may speak. */
  owner: Schema.NullOr(UserId),
  createdAt: Timestamp
}).annotate({
  identifier: "Context"
})
export type Context = typeof Context.Type

/** A model as somebody set it; what is absent is as the agent's definition has it. */
const SetModel = Schema.Struct({
  provider: Schema.String,
  name: Schema.String,
  temperature: Schema.optional(Schema.NullOr(Schema.Finite)),
  maxOutputTokens: Schema.optional(Schema.NullOr(Schema.Int))
})

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
  /** Which models answer from here on, how long one request may take, what the agent is reminded of, how much of the log a model is shown, and its own tools. */
  config: Schema.Struct({
    primary: Schema.NullOr(SetModel),
    fallback: Schema.NullOr(SetModel),
    timeoutMs: Schema.NullOr(Schema.Int),
    /** How patiently one model is asked; null is as patiently as the server does by itself. */
    retry: Schema.NullOr(
      Schema.Struct({
        maxRetries: Schema.Int,
        baseMs: Schema.Int,
        maxMs: Schema.Int,
        factor: Schema.Finite
      })
    ),
    isRacing: Schema.Boolean,
    guard: Schema.NullOr(
      Schema.Struct({
        provider: Schema.String,
        name: Schema.String,
        instructions: Schema.NullOr(Schema.String)
      })
    ),
    memory: Schema.NullOr(Schema.Struct(configFields.SetMemoryConfigEvent)),
    reducer: ReducerConfig,
    /** The tools that the context defines (S004-F02). */
    tools: Schema.Array(
      Schema.Struct({
        name: Schema.String,
        description: Schema.NullOr(Schema.String),
        /** The tool that the name is for; null where a client answers its calls. */
        tool: Schema.NullOr(Schema.String),
        /** The arguments that are given to that tool. */
        arguments: Schema.Record(Schema.String, Schema.Json),
        /** What a client tool takes; null for another name of a tool. */
        inputSchema: Schema.NullOr(Schema.Record(Schema.String, Schema.Json)),
        /** How long a call of a client tool waits for its result; null for another name of a tool. */
        timeoutMs: Schema.NullOr(Schema.Int)
      })
    ),
    /** What each message is worked through with; null where it is one turn (S004-F03). */
    workflow: Schema.NullOr(
      Schema.Struct({
        flowType: FlowType,
        steps: Schema.Array(FlowStep),
        maxIterations: Schema.NullOr(Schema.Int)
      })
    )
  }),
  /** The step that a flow has come to; null where none is at work. */
  flow: Schema.NullOr(Schema.Struct({ step: Schema.String, index: Schema.Int, iteration: Schema.Int })),
  /** What a model made of messages that it is shown no more, where a reducer had them summed up. */
  summary: Schema.NullOr(Schema.String),
  /** What other contexts of the agent recall of this one, where it keeps a running summary. */
  notes: Schema.NullOr(Schema.String),
  /** How many messages of the context it is shown no more. */
  droppedMessages: Schema.Int,
  /** The estimated tokens of what it is shown next, without the tools. */
  promptTokens: Schema.Int,
  /** The messages that the model is shown next, in the form of a prompt. */
  messages: Schema.Array(Schema.Json),
  pendingCalls: Schema.Array(RequestedToolCall)
}).annotate({ identifier: "ContextState" })
export type ContextState = typeof ContextState.Type

/** Of a file that an event brings or names; the body of the request has its own bound. */
const fileSourceMaxChars = 1_048_576

const messageContent = Schema.String.check(Schema.isBetweenLength(1, 100_000))

/** Where a fork begins and who goes on with it. */
export const ForkInput = Schema.Struct({
  name: ContextName,
  /** The number of the last shared event; the last one where absent. */
  at: Schema.optional(Schema.NullOr(Schema.Int.check(Schema.isGreaterThanOrEqualTo(1)))),
  /** The agent of the same context where absent. */
  agentId: Schema.optional(Schema.NullOr(AgentId)),
  /** Said in it at once, and answered; where that is refused, no fork is made. */
  message: Schema.optional(Schema.NullOr(messageContent))
})

/** Who answers in it: the project's TodoAssistant where no agent is named. */
export const ContextInput = Schema.Struct({
  name: ContextName,
  agentId: Schema.optional(Schema.NullOr(AgentId))
})

/** What an event may say beside what is its own: whether a turn follows, and which event of the log caused it (S004-R17, R21). */
const shared = {
  triggersAgentTurn: Schema.optional(Schema.NullOr(Schema.Boolean)),
  parentEventId: Schema.optional(Schema.NullOr(ContextEventId))
}

/** Why a turn that somebody ends goes on for now. */
export const LaterInterrupt = Schema.Struct({ detail: Schema.String }).annotate({
  identifier: "LaterInterrupt"
})

/** Something said; it triggers a turn unless it says otherwise (S004-R21, R23). */
export const MessageInput = Schema.Struct({
  type: UserMessageEvent.fields.type,
  content: messageContent,
  ...shared
}).annotate({ identifier: "MessageInput" })

/** A file that was sent to `/attachments`, one that the server fetches, or one that stands in the event; it triggers a turn only where it says so (S004-R25). */
export const FileInput = Schema.Struct({
  type: FileAttachmentEvent.fields.type,
  attachment: Schema.optional(Schema.NullOr(Digest)),
  url: Schema.optional(Schema.NullOr(Schema.String.check(Schema.isBetweenLength(1, 2_000)))),
  /** The file as a `data:` URL, or its address on the web. */
  source: Schema.optional(Schema.NullOr(Schema.String.check(Schema.isBetweenLength(1, fileSourceMaxChars)))),
  /** What the file is; of a `data:` URL and of what is fetched it must be the same. */
  mimeType: Schema.optional(Schema.NullOr(MimeType)),
  fileName: Schema.optional(Schema.NullOr(FileName)),
  /** Nobody vouches for what the file says; also where it was sent as such. */
  untrusted: Schema.optional(Schema.NullOr(Schema.Boolean)),
  ...shared
}).annotate({ identifier: "FileInput" })
export type FileInput = typeof FileInput.Type

/** What the agent is told to be from here on. */
export const SystemPromptInput = Schema.Struct({
  type: SystemPromptEvent.fields.type,
  content: Schema.String.check(Schema.isBetweenLength(1, 100_000)),
  ...shared
}).annotate({ identifier: "SystemPromptInput" })

/** The result of a call that waits for a client, or the error in its place; the first that comes counts (S004-F02). */
export const ToolResultInput = Schema.Struct({
  type: Schema.tag("ToolResultEvent"),
  /** `callId` of the `ToolCallStartedEvent`. */
  callId: Schema.String.check(Schema.isBetweenLength(1, 2_600)),
  /** Any JSON, null included; leave it out where there is an error. */
  result: Schema.optional(Schema.Json),
  error: Schema.optional(
    Schema.NullOr(
      Schema.Union([Schema.String.check(Schema.isMinLength(1)), Schema.Record(Schema.String, Schema.Json)])
    )
  ),
  /** The source is not trusted: the agent may only suggest in this context afterwards. */
  untrusted: Schema.optional(Schema.NullOr(Schema.Boolean))
}).annotate({ identifier: "ToolResultInput" })
export type ToolResultInput = typeof ToolResultInput.Type

const configInput = <const T extends keyof typeof configFields, const F extends Schema.Struct.Fields>(
  type: T,
  fields: F
) =>
  Schema.Struct({ type: Schema.tag(type), ...fields, ...shared }).annotate({
    identifier: type.replace(/Event$/, "Input")
  })

export const SetLlmConfigInput = configInput("SetLlmConfigEvent", configFields.SetLlmConfigEvent)
export const SetTimeoutInput = configInput("SetTimeoutEvent", configFields.SetTimeoutEvent)
export const SetRetryConfigInput = configInput("SetRetryConfigEvent", configFields.SetRetryConfigEvent)
export const SetRacingInput = configInput("SetRacingEvent", configFields.SetRacingEvent)
export const SetGuardInput = configInput("SetGuardEvent", configFields.SetGuardEvent)
/** `embeddingModel` is refused with reason `embeddingUnavailable` until there is search by meaning (S004-F04). */
export const SetMemoryConfigInput = configInput("SetMemoryConfigEvent", {
  ...configFields.SetMemoryConfigEvent,
  embeddingModel: Schema.optional(
    Schema.NullOr(
      Schema.Union([
        Schema.String,
        Schema.Struct({
          provider: Schema.String.check(Schema.isBetweenLength(1, 200)),
          name: Schema.String.check(Schema.isBetweenLength(1, 200))
        })
      ])
    )
  )
})
export const SetReducerInput = configInput("SetReducerEvent", configFields.SetReducerEvent)
export const DefineToolInput = configInput("DefineToolEvent", configFields.DefineToolEvent)

/** What each message is worked through with from here on (S004-F03). */
export const DefineWorkflowInput = Schema.Struct({
  type: Schema.tag("DefineWorkflowEvent"),
  ...workflowInputFields,
  ...shared
}).annotate({ identifier: "DefineWorkflowInput" })

/** An event by which somebody sets how the agent works in this context (S004-F01…F07). */
export const ConfigInput = Schema.Union([
  SetLlmConfigInput,
  SetTimeoutInput,
  SetRetryConfigInput,
  SetRacingInput,
  SetGuardInput,
  SetMemoryConfigInput,
  SetReducerInput,
  DefineToolInput,
  DefineWorkflowInput
]).annotate({ identifier: "ConfigInput" })
export type ConfigInput = typeof ConfigInput.Type

/** An event that somebody adds. */
export const EventInput = Schema.Union([
  MessageInput,
  SystemPromptInput,
  FileInput,
  ToolResultInput,
  ...ConfigInput.members
]).annotate({ identifier: "EventInput" })
export type EventInput = typeof EventInput.Type

export class ContextsApi extends HttpApiGroup.make("contexts")
  .add(
    /** The newest first. */
    HttpApiEndpoint.get("list", "/contexts", {
      params: project,
      query: { ...PageQuery, agentId: told(AgentId, "Of this agent") },
      success: Page(Context),
      error: [NotFound, InvalidInput]
    }),
    HttpApiEndpoint.post("create", "/contexts", {
      params: project,
      payload: ContextInput,
      success: Context.pipe(HttpApiSchema.status(201)),
      error: [NotFound, Forbidden, Conflict, InvalidInput]
    }),
    HttpApiEndpoint.get("get", "/contexts/:name", {
      params: context,
      success: Context,
      error: NotFound
    }).annotateMerge(alsoUnchanged),
    HttpApiEndpoint.get("state", "/contexts/:name/state", {
      params: context,
      success: ContextState,
      error: NotFound
    }),
    /** Folds the log from its beginning, with no model and no tool, and compares each event with what would have been written (S004-F19). */
    HttpApiEndpoint.get("replay", "/contexts/:name/replay", {
      params: context,
      success: Replay,
      error: NotFound
    }),
    /** A context whose log is this one's up to an event; nothing is copied, and each goes on by itself (S004-F11…F13). */
    HttpApiEndpoint.post("fork", "/contexts/:name/fork", {
      params: context,
      payload: ForkInput,
      success: Context.pipe(HttpApiSchema.status(201)),
      error: [NotFound, Forbidden, Conflict, InvalidInput, TooManyRequests]
    }),
    /** Ends the open turn; what was said of it stays in the log. 202 while a kill switch is on: it ends when that is off. 409 when no turn is open. */
    HttpApiEndpoint.post("interrupt", "/contexts/:name/interrupt", {
      params: context,
      success: [HttpApiSchema.NoContent, LaterInterrupt.pipe(HttpApiSchema.status(202))],
      error: [NotFound, Forbidden, Conflict]
    }),
    /** Answers as soon as the event is kept; what the agent does comes through the log (S004-R03). */
    HttpApiEndpoint.post("addEvent", "/contexts/:name/events", {
      params: context,
      payload: EventInput,
      success: HttpApiSchema.NoContent,
      error: [NotFound, Forbidden, Conflict, InvalidInput, TooManyRequests]
    }),
    /** The log: a JSON page, or live with `Accept: text/event-stream`, ids being event numbers; Last-Event-ID goes on behind one. */
    HttpApiEndpoint.get("events", "/contexts/:name/events", {
      params: context,
      query: { ...PageQuery, ...After },
      success: Page(LoggedEvent),
      error: [NotFound, InvalidInput]
    }).annotateMerge(alsoStreamed)
  )
  .prefix("/api/projects/:projectId")
  .middleware(RequestJudgement)
  .middleware(Authorization) {}
