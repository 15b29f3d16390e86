/**
 * The reducer: everything an actor knows, folded from the log.
 *
 * `reduce` is pure and total: no clock, no counter beside the log, an unknown
 * event moves only the counter. An actor that dies loses nothing, because its
 * state is this fold (S004-R06…R13). In `messages` each tool call is followed
 * by its result before anybody else speaks, once no call is pending: what is
 * said meanwhile is held back. This file decides nothing; `decide` does.
 */
import { Option, type Schema } from "effect"
import {
  type ContextEvent,
  type ContextEventId,
  eventNumber,
  type LoggedEvent,
  UnknownEvent
} from "./context-event.ts"
import type { Message, ToolCall } from "./message.ts"
import { addUsage, noUsage, type Usage } from "./run.ts"

export interface LlmConfig {
  readonly provider: string
  readonly name: string
}

/** What the run that wrote last has done and used. */
export interface RunProgress {
  readonly id: string
  readonly steps: number
  /** Steps that no longer count towards the limit: those before the run was paused and resumed. */
  readonly stepsBeforeResume: number
  readonly usage: Usage
  readonly isSoftStopped: boolean
  /** The step limit has ended its turn, and no turn has begun since. */
  readonly isPaused: boolean
}

export interface ReducedContext {
  readonly messages: ReadonlyArray<Message>
  /** Said while a tool call was pending, or meant for the next turn; joins `messages` when its time has come. */
  readonly heldMessages: ReadonlyArray<Message>
  readonly config: {
    readonly primary: Option.Option<LlmConfig>
    readonly fallback: Option.Option<LlmConfig>
    readonly timeoutMs: Option.Option<number>
  }
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
  /** Calls of the last answer that have no outcome yet, in the order the model made them. */
  readonly pendingCalls: ReadonlyArray<ToolCall>
  /** The turn that asked for the pending calls has ended, and not by a crash: they are no longer wanted. */
  readonly areCallsAbandoned: boolean
  /** The last answer asked for no tool, and no turn has begun since because somebody asked for one. */
  readonly isAnswered: boolean
  /** What the last run has said last. */
  readonly lastText: string
  readonly run: RunProgress
  readonly isSessionOpen: boolean
}

const newRun = (id: string): RunProgress => ({
  id,
  steps: 0,
  stepsBeforeResume: 0,
  usage: noUsage,
  isSoftStopped: false,
  isPaused: false
})

export const emptyContext: ReducedContext = {
  messages: [],
  heldMessages: [],
  config: { primary: Option.none(), fallback: Option.none(), timeoutMs: Option.none() },
  nextEventNumber: 1,
  lastEventId: Option.none(),
  currentTurnNumber: 0,
  agentTurnStartedAtEventId: Option.none(),
  agentTurnStartedAt: Option.none(),
  isTriggered: false,
  isTurnDue: false,
  pendingCalls: [],
  areCallsAbandoned: false,
  isAnswered: false,
  lastText: "",
  run: newRun(""),
  isSessionOpen: false
}

/** Folds one event into the state. */
export const reduce = (context: ReducedContext, event: LoggedEvent): ReducedContext => fold([event], context)

/** Folds a whole log, or the part of it that is new, in time linear in its length. */
export const fold = (events: Iterable<LoggedEvent>, from: ReducedContext = emptyContext): ReducedContext => {
  const { messages, ...rest } = from
  const said: Array<Message> = []
  let state: State = rest
  for (const event of events) {
    const step = release(stepOf(state, event))
    for (const message of step.said) said.push(message)
    state = step.state
  }
  return { ...state, messages: said.length === 0 ? messages : [...messages, ...said] }
}

/** All but the messages: they only grow and no step reads them, so one array serves a whole fold. */
type State = Omit<ReducedContext, "messages">

/** A state and what joins the messages on the way to it. */
interface Step {
  readonly state: State
  readonly said: ReadonlyArray<Message>
}

const silently = (state: State): Step => ({ state, said: [] })

const stepOf = (before: State, event: LoggedEvent): Step => {
  const state: State = {
    ...before,
    nextEventNumber: eventNumber(event.id) + 1,
    lastEventId: Option.some(event.id),
    isTriggered: before.isTriggered || event.triggersAgentTurn,
    isTurnDue: before.isTurnDue || event.triggersAgentTurn
  }
  return event instanceof UnknownEvent ? silently(state) : stepOfKnown(state, event)
}

const stepOfKnown = (state: State, event: ContextEvent): Step => {
  switch (event.type) {
    case "SessionStartedEvent":
      return silently({ ...state, isSessionOpen: true })
    case "SessionEndedEvent":
      return silently({ ...state, isSessionOpen: false })
    case "SystemPromptEvent":
      return instruct(state, event.content)
    case "UserMessageEvent":
      return silently({
        ...state,
        heldMessages: [...state.heldMessages, { role: "user", content: event.content }]
      })
    case "SoftStopEvent":
      return instruct(
        { ...state, run: { ...state.run, isSoftStopped: true }, isAnswered: false },
        event.content
      )
    case "SetLlmConfigEvent":
      return silently({
        ...state,
        config: { ...state.config, [event.role]: Option.some({ provider: event.provider, name: event.name }) }
      })
    case "SetTimeoutEvent":
      return silently({ ...state, config: { ...state.config, timeoutMs: Option.some(event.timeoutMs) } })
    case "AgentTurnStartedEvent":
      return silently(openTurn(state, event.turnNumber, event.id, event.timestamp))
    case "AgentTurnCompletedEvent":
    case "AgentTurnFailedEvent":
      return silently(closeTurn(state))
    case "AgentTurnInterruptedEvent":
      if (event.reason === "crash")
        return silently({ ...closeTurn(state), areCallsAbandoned: state.areCallsAbandoned, isTurnDue: true })
      return silently({ ...closeTurn(state), run: { ...state.run, isPaused: event.reason === "stepLimit" } })
    case "AssistantMessageEvent":
      return answer(state, event.runId, event.content, event.toolCalls, event.usage)
    case "ToolCallStartedEvent":
      return silently(state)
    case "ToolCallCompletedEvent":
      return withOutcome(state, event.callId, false, event.result)
    case "ToolCallFailedEvent":
      return withOutcome(state, event.callId, true, event.error)
  }
}

/**
 * Lets held messages join once nothing speaks against it.
 *
 * Providers want a call's result right after the call. A message that triggers
 * a turn while another is open belongs to the next one: an answer that is
 * written at that moment has not seen it.
 */
const release = ({ state, said }: Step): Step => {
  const isForNextTurn = state.isTriggered && Option.isSome(state.agentTurnStartedAtEventId)
  if (state.heldMessages.length === 0 || state.pendingCalls.length > 0 || isForNextTurn)
    return { state, said }
  return { state: { ...state, heldMessages: [] }, said: [...said, ...state.heldMessages] }
}

/** An instruction is for the turn that is open: it waits for pending calls only. */
const instruct = (state: State, content: string): Step =>
  state.pendingCalls.length === 0
    ? { state, said: [{ role: "system", content }] }
    : silently({ ...state, heldMessages: [...state.heldMessages, { role: "system", content }] })

/** A turn that somebody asked for wants an answer of its own; one that a crash made necessary goes on where the log ends. */
const openTurn = (state: State, turnNumber: number, startedBy: ContextEventId, startedAt: string): State => ({
  ...state,
  currentTurnNumber: turnNumber,
  agentTurnStartedAtEventId: Option.some(startedBy),
  agentTurnStartedAt: Option.some(startedAt),
  isAnswered: state.isAnswered && !state.isTriggered,
  isTriggered: false,
  isTurnDue: false,
  run: state.run.isPaused
    ? { ...state.run, stepsBeforeResume: state.run.steps, isSoftStopped: false, isPaused: false }
    : state.run
})

const closeTurn = (state: State): State => ({
  ...state,
  agentTurnStartedAtEventId: Option.none(),
  agentTurnStartedAt: Option.none(),
  areCallsAbandoned: state.pendingCalls.length > 0
})

const answer = (
  state: State,
  runId: string,
  text: string,
  calls: ReadonlyArray<ToolCall>,
  usage: Usage
): Step => {
  const isSameRun = state.run.id === runId
  const run = isSameRun ? state.run : newRun(runId)
  return {
    state: {
      ...state,
      pendingCalls: calls,
      areCallsAbandoned: false,
      isAnswered: calls.length === 0,
      lastText: text === "" && isSameRun ? state.lastText : text,
      run: { ...run, steps: run.steps + 1, usage: addUsage(run.usage, usage) }
    },
    said: [
      // `decide` asks for no answer while a call is pending; a log that has one all the same keeps its calls paired.
      ...state.pendingCalls.map((call) => toolMessage(call, true, unknownOutcome)),
      {
        role: "assistant",
        content: [
          ...(text === "" ? [] : [{ type: "text" as const, text }]),
          ...calls.map((call) => ({
            type: "tool-call" as const,
            id: call.id,
            name: call.name,
            params: call.arguments
          }))
        ]
      }
    ]
  }
}

const unknownOutcome = "The outcome of this call is unknown."

/** A second outcome of a call, or one of a call that nobody made, says nothing to the model. */
const withOutcome = (state: State, callId: string, isFailure: boolean, result: Schema.Json): Step => ({
  state: { ...state, pendingCalls: state.pendingCalls.filter((call) => call.id !== callId) },
  said: state.pendingCalls
    .filter((call) => call.id === callId)
    .map((call) => toolMessage(call, isFailure, result))
})

const toolMessage = (call: ToolCall, isFailure: boolean, result: Schema.Json): Message => ({
  role: "tool",
  content: [{ type: "tool-result", id: call.id, name: call.name, isFailure, result }]
})
