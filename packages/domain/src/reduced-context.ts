/**
 * The state that a context's log folds to: all that is known of it.
 *
 * Nothing in it grows with the log: what is not shown any more is counted, and
 * what was done is not remembered. So it can be kept beside the log, and an
 * actor that begins with it reads only what is new.
 */
import { Option } from "effect"
import type { CallState } from "./context-calls.ts"
import { type ContextConfig, emptyConfig } from "./context-config.ts"
import type { ContextEventId } from "./context-event.ts"
import { type FlowState, noFlow } from "./context-flow.ts"
import type { WindowState } from "./context-window.ts"
import type { Message } from "./message.ts"
import { noNotes, type Notes } from "./notes.ts"
import { noRepetition } from "./repetition.ts"
import { newRun, type RunProgress } from "./run-progress.ts"

export interface ReducedContext extends CallState, FlowState, WindowState {
  /** The window: the newest messages, as many as the model is shown. */
  readonly messages: ReadonlyArray<Message>
  readonly config: ContextConfig
  readonly nextEventNumber: number
  readonly lastEventId: Option.Option<ContextEventId>
  readonly currentTurnNumber: number
  /** None: idle. Some: a turn is open, and this is the parent of new events. */
  readonly agentTurnStartedAtEventId: Option.Option<ContextEventId>
  readonly agentTurnStartedAt: Option.Option<string>
  /** A triggering event has come, and no turn has begun since. */
  readonly isTriggered: boolean
  /** A turn should begin: somebody asked for it, or a crash has broken the last one off. */
  readonly isTurnDue: boolean
  /** When the first and the last of the triggers came for which no turn has begun. */
  readonly triggeredAt: Option.Option<{ readonly first: string; readonly last: string }>
  /** Somebody wants the open turn to end. */
  readonly isInterruptRequested: boolean
  /** The turn that asked for the pending calls has ended, and not by a crash: they are no longer wanted. */
  readonly areCallsAbandoned: boolean
  /** Outcomes of calls that come before one which is pending, by their ids: the model reads them in its own order. */
  readonly heldResults: Readonly<Record<string, Message>>
  /** The calls of the last answer whose results are not among the messages yet, in the order in which the model made them. */
  readonly unsaidCalls: ReadonlyArray<string>
  /** How many messages a guard has found safe, counted from the first of the context. */
  readonly judgedMessages: number
  /** What a client says that the agent shall be, where no guard has judged that. */
  readonly unjudgedInstructions: Option.Option<string>
  readonly notes: Notes
  /** What the agent was reminded of last: it is not told again what it has just been told. */
  readonly recalled: ReadonlyArray<ContextEventId>
  /** Tools of foreign servers that were found or called, the newest last. */
  readonly toolsInUse: ReadonlyArray<string>
  readonly run: RunProgress
  readonly isSessionOpen: boolean
}

export const emptyContext: ReducedContext = {
  systemPrompt: Option.none(),
  summary: Option.none(),
  droppedMessages: 0,
  windowTokens: 0,
  spoken: { turns: 0, answers: 0 },
  messages: [],
  ...noFlow,
  config: emptyConfig,
  nextEventNumber: 1,
  lastEventId: Option.none(),
  currentTurnNumber: 0,
  agentTurnStartedAtEventId: Option.none(),
  agentTurnStartedAt: Option.none(),
  isTriggered: false,
  isTurnDue: false,
  triggeredAt: Option.none(),
  isInterruptRequested: false,
  pendingCalls: [],
  areCallsAbandoned: false,
  heldResults: {},
  unsaidCalls: [],
  waitingCalls: {},
  repetition: noRepetition,
  judgedMessages: 0,
  unjudgedInstructions: Option.none(),
  notes: noNotes,
  recalled: [],
  toolsInUse: [],
  run: newRun(""),
  isSessionOpen: false
}
