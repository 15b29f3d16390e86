/**
 * The reducer: everything an actor knows, folded from the log.
 *
 * `reduce` is pure and total: no clock, no counter beside the log, an unknown
 * event moves only the counter. An actor that dies loses nothing, because its
 * state is this fold (S004-R06…R13). In `messages` the tool calls of an answer
 * are followed by their results, in the order of the calls, before anybody else
 * speaks: what comes earlier is held back. This file decides nothing; `decide` does.
 */
import { Option, type Schema } from "effect"
import {
  type AssistantMessageEvent,
  type AgentTurnInterruptedEvent,
  type ContextEvent,
  type ContextEventId,
  type ContextNotedEvent,
  ContextSummarizedEvent,
  eventNumber,
  type FileAttachmentEvent,
  type LoggedEvent,
  type MemoryRecalledEvent,
  type SoftStopEvent,
  type SystemPromptEvent,
  UnknownEvent,
  type UserMessageEvent
} from "./context-event.ts"
import { reduceConfig } from "./context-config.ts"
import { startCall } from "./context-calls.ts"
import { count, cutBefore, findOverflow, openWindow, reducerOf, type Window } from "./context-window.ts"
import { beginStep, beginTurn, completeTurn, endFlow, endLoop, hear, newestOf } from "./context-flow.ts"
import { withMeaning } from "./defined-tool.ts"
import { filePartOf, type Picture } from "./attachment.ts"
import { type HistoryGivenEvent, messagesGiven, withInstructions } from "./given-history.ts"
import { hold, type OwnState, release, say, sayNow, silently, type State, type Step } from "./context-step.ts"
import { behindTexts } from "./grown.ts"
import { withVerdict } from "./guard.ts"
import { type Answered, type Message, quoted } from "./message.ts"
import { listTokens } from "./message-size.ts"
import { noRepetition, warned, withError } from "./repetition.ts"
import { addUsage } from "./run.ts"
import { newRun } from "./run-progress.ts"
import { afterAnswer } from "./unfinished.ts"
import { withNotes } from "./notes.ts"
import { withRecalled } from "./recalled.ts"
import { emptyContext, type ReducedContext } from "./reduced-context.ts"
import { noSpeakers, withAnswer, withSetting, withSpeaker } from "./speakers.ts"
import { withToolsInUse } from "./tools-in-use.ts"
import { toolMessage, withoutOutcome, without, withResult } from "./tool-results.ts"

export { emptyContext, type ReducedContext } from "./reduced-context.ts"

/** What a model is shown: the system prompt, what stands for what it is shown no more, and the messages. */
export const promptOf = ({ messages, summary, systemPrompt }: ReducedContext): ReadonlyArray<Message> => {
  const first = [systemPrompt, Option.map(summary, told)].flatMap(Option.toArray)
  return first.length === 0 ? messages : behindInstructions(first, messages)
}

const behindInstructions = behindTexts((content): Message => ({ role: "system", content }))

const told = (summary: string): string => `What was said before this, summed up:\n\n${summary}`

/** Folds one event into the state. */
export const reduce = (context: ReducedContext, event: LoggedEvent): ReducedContext => fold([event], context)

/** Folds a whole log, or the part of it that is new, in time linear in its length. */
export const fold = (events: Iterable<LoggedEvent>, from: ReducedContext = emptyContext): ReducedContext => {
  const { messages, ...rest } = from
  const window = openWindow(messages)
  // What a step is made from is this fold's own: it is changed in place, and copied only where a step is another state.
  let state: OwnState = { ...rest, asked: [...rest.asked] }
  for (const event of events) state = settle(window, release(stepOf(state, event)), event)
  return { ...state, asked: newestOf(state.asked), messages: window.close() }
}

/** What was said joins the window, and what lies too far back leaves it. */
const settle = (window: Window, step: Step, event: LoggedEvent): OwnState => {
  const { said } = step
  const grown = step.state as OwnState
  if (said.length > 0) {
    window.add(said)
    grown.windowTokens += listTokens(said)
    grown.spoken = count(grown.spoken, said)
  }
  const reducer = reducerOf(grown.config)
  // Results that are still to come belong to the newest unit: it is cut when it is whole.
  const cut =
    event instanceof ContextSummarizedEvent
      ? cutBefore(event.messages - grown.droppedMessages, reducer, grown, window)
      : grown.unsaidCalls.length > 0
        ? undefined
        : findOverflow(reducer, grown, window)
  if (!cut) return grown
  window.cut(cut)
  grown.droppedMessages += cut.index - cut.carried.length
  grown.windowTokens = cut.tokens
  return grown
}

const stepOf = (state: OwnState, event: LoggedEvent): Step => {
  state.nextEventNumber = eventNumber(event.id) + 1
  state.lastEventId = Option.some(event.id)
  if (event.triggersAgentTurn) {
    state.isTriggered = true
    state.isAsked ||= asksAnew(event)
    state.isTurnDue = true
    state.triggeredAt = triggered(state, event.timestamp)
  }
  if (event instanceof UnknownEvent) return silently(state)
  if (event.type === "ToolCallStartedEvent" || event.type === "ToolCallCompletedEvent")
    state.toolsInUse = withToolsInUse(state.toolsInUse, event)
  return event.type === "UserMessageEvent" ? hearMessage(state, event) : stepOfKnown(state, event)
}

const hearMessage = (state: OwnState, { content, userId }: UserMessageEvent): Step => {
  hear(state.asked, { at: state.nextEventNumber - 1, content })
  return say(withSpeaker(state, userId ?? null), content)
}

const showFile = (state: State, event: FileAttachmentEvent): State =>
  hold(withSpeaker(state, event.userId ?? null), [{ role: "user", content: [filePartOf(event)] }])

const goOnFrom = (state: State, event: HistoryGivenEvent): State => ({
  ...hold(state, messagesGiven(event)),
  systemPrompt: withInstructions(state.systemPrompt, event),
  unjudgedInstructions: withInstructions(state.unjudgedInstructions, event)
})

/** The model is told what to be; it is shown no more what that stands in the place of. */
const beFrom = (state: State, event: SystemPromptEvent): State => ({
  ...withSetting(state, event),
  systemPrompt: Option.some(event.content),
  unjudgedInstructions: Option.none()
})

/** Whether an event asks for something: whatever triggers a turn and does not only let what is at work go on. */
export const asksAnew = ({ triggersAgentTurn, type }: LoggedEvent): boolean =>
  triggersAgentTurn && type !== "FlowStepStartedEvent" && type !== "RunResumedEvent"

const stepOfKnown = (state: State, event: Exclude<ContextEvent, UserMessageEvent>): Step => {
  switch (event.type) {
    case "SessionStartedEvent":
      return silently({ ...state, isSessionOpen: true })
    case "SessionEndedEvent":
      return silently({ ...state, isSessionOpen: false })
    case "ContextForkedEvent":
      return silently({ ...state, speakers: noSpeakers })
    case "ComparisonStartedEvent":
      return silently(state)
    case "GuardVerdictEvent":
      return silently(withVerdict(state, event))
    case "ContextSummarizedEvent":
      return silently(summarize(state, event))
    case "ContextNotedEvent":
      return silently({ ...spend(state, event), notes: withNotes(state.notes, event) })
    case "SystemPromptEvent":
      return silently(beFrom(state, event))
    case "HistoryGivenEvent":
      return silently(goOnFrom(state, event))
    case "MemoryRecalledEvent":
      return remind(state, event)
    case "RunResumedEvent":
      return say(event.userId ? withSpeaker(state, event.userId) : state, event.content)
    case "FlowStepStartedEvent":
      return silently(beginStep(state, event))
    case "FileAttachmentEvent":
      return silently(showFile(state, event))
    case "InterruptRequestedEvent":
      return silently({
        ...state,
        isInterruptRequested: Option.isSome(state.agentTurnStartedAtEventId)
      })
    case "SoftStopEvent":
      return softStop(state, event)
    case "LoopWarningEvent":
      return instruct({ ...state, repetition: warned(state.repetition) }, event.content)
    case "ContinuationRequestedEvent":
      return instruct({ ...state, run: prompted(state.run) }, event.content)
    case "SetLlmConfigEvent":
    case "SetTimeoutEvent":
    case "SetRetryConfigEvent":
    case "SetRacingEvent":
    case "SetGuardEvent":
    case "SetMemoryConfigEvent":
    case "SetReducerEvent":
    case "DefineToolEvent":
    case "DefineWorkflowEvent":
      return silently({ ...withSetting(state, event), config: reduceConfig(state.config, event) })
    case "AgentTurnStartedEvent":
      return silently(openTurn(state, event.turnNumber, event.id, event.timestamp))
    case "AgentTurnCompletedEvent":
      return silently(closeTurn(completeTurn(state, turnStart(state))))
    case "AgentTurnFailedEvent":
      return silently(closeTurn(endFlow(state, turnStart(state))))
    case "AgentTurnInterruptedEvent":
      return interrupt(state, event)
    case "AssistantMessageEvent":
      return answer(state, event)
    case "ToolCallStartedEvent":
      return silently(startCall(state, event.callId, event.waitsFor))
    case "ToolCallCompletedEvent":
      return withOutcome(
        endLoop(withAnswer(state, event.userId), event),
        event.callId,
        false,
        event.result,
        event.pictures
      )
    case "ToolCallFailedEvent": {
      // Nobody made a call that was not wanted any more: it is no try of the model's.
      if (state.areCallsAbandoned) return withOutcome(state, event.callId, true, event.error)
      const made = startCall(state, event.callId, undefined)
      const repetition = withError(made.repetition, event.callId, event.error)
      const heard = withAnswer({ ...made, repetition }, event.userId)
      return withOutcome(heard, event.callId, true, event.error)
    }
  }
}

/** What a summary cost is the run's; one that failed leaves the summary that there was. */
const summarize = (state: State, event: ContextSummarizedEvent): State => ({
  ...spend(state, event),
  summary: event.content === null ? state.summary : Option.some(event.content)
})

/** Counts what a request cost that was no step. */
const spend = (state: State, { runId, usage }: ContextSummarizedEvent | ContextNotedEvent): State => ({
  ...state,
  run: state.run.id === runId ? { ...state.run, usage: addUsage(state.run.usage, usage) } : state.run
})

const triggered = ({ triggeredAt }: State, at: string): State["triggeredAt"] =>
  Option.some({
    first: Option.match(triggeredAt, { onNone: () => at, onSome: ({ first }) => first }),
    last: at
  })

const prompted = (run: State["run"]): State["run"] => ({
  ...run,
  unfinished: Option.map(run.unfinished, (unfinished) => ({ ...unfinished, isPrompted: true }))
})

const instruct = (state: State, content: string): Step => sayNow(state, { role: "system", content })

/** Other people's words have no say here: the system never speaks them. */
const remind = (state: State, event: MemoryRecalledEvent): Step =>
  sayNow(
    { ...state, recalled: withRecalled(state.recalled, event) },
    { role: "user", content: event.content, options: quoted }
  )

/** Where the open turn began; everything was before it where none is open. */
const turnStart = ({ agentTurnStartedAtEventId, nextEventNumber }: State): number =>
  Option.match(agentTurnStartedAtEventId, { onNone: () => nextEventNumber, onSome: eventNumber })

/** A turn that somebody asked for wants an answer of its own; one that a crash made necessary goes on where the log ends. */
const openTurn = (state: State, turnNumber: number, startedBy: ContextEventId, startedAt: string): State => {
  const isSpokenTo = state.isStepDue && state.isAsked
  return {
    ...beginTurn(state),
    currentTurnNumber: turnNumber,
    agentTurnStartedAtEventId: Option.some(startedBy),
    agentTurnStartedAt: Option.some(startedAt),
    isAnswered: state.isAnswered && !state.isTriggered,
    isTriggered: isSpokenTo,
    isTurnDue: isSpokenTo,
    triggeredAt: isSpokenTo ? state.triggeredAt : Option.none(),
    repetition: state.isTriggered ? noRepetition : state.repetition,
    run: resumed(state)
  }
}
/** A limit that ended the last turn no longer holds; what somebody asks anew is no continuation of the last answer. */
const resumed = ({ isTriggered, run }: State): State["run"] => {
  const unfinished = isTriggered ? Option.none() : run.unfinished
  return Option.isSome(run.pausedFor)
    ? { ...run, unfinished, stepsBeforeResume: run.steps, softStop: Option.none(), pausedFor: Option.none() }
    : { ...run, unfinished }
}

/** A crash is nobody's wish: the next turn goes on where the log ends. A limit lets the run rest. */
const interrupt = (state: State, { partialText, reason }: AgentTurnInterruptedEvent): Step => {
  const { areCallsAbandoned } = state
  if (reason === "crash") return silently({ ...closeTurn(state), areCallsAbandoned, isTurnDue: true })
  const pausedFor =
    reason === "stepLimit" || reason === "timeout" || reason === "budget"
      ? Option.some(reason)
      : Option.none()
  const isGivenUp = reason === "user" || reason === "cancelled" || reason === "forked"
  const closed = closeTurn(isGivenUp ? endFlow(state, turnStart(state)) : state)
  const step = silently({
    ...closed,
    lastText: partialText ? partialText : closed.lastText,
    run: { ...closed.run, pausedFor }
  })
  // What was said before somebody broke in stands where it was said: the next prompt has it.
  const isBrokenIn = reason === "message" || reason === "user"
  return isBrokenIn && partialText ? { ...step, said: [sayText(partialText)] } : step
}

const sayText = (text: string): Message => ({ role: "assistant", content: [{ type: "text", text }] })

/** The model is told to come to an end, after what it had said of an answer that was broken off. */
const softStop = (state: State, event: SoftStopEvent): Step => {
  const { content, partialText = "", reason, runId = state.run.id, timestamp } = event
  const run = state.run.id === runId ? state.run : newRun(runId)
  const stopped: State = {
    ...state,
    run: {
      ...run,
      softStop: Option.some({ reason, at: timestamp, steps: run.steps }),
      unfinished: Option.none()
    },
    isAnswered: false,
    lastText: partialText === "" ? state.lastText : partialText
  }
  const step = instruct(stopped, content)
  // A request is broken off only while no call is pending, so the words stand where they belong.
  return partialText === "" || state.pendingCalls.length > 0
    ? step
    : {
        ...step,
        said: [sayText(partialText), ...step.said]
      }
}

const closeTurn = (state: State): State => ({
  ...state,
  agentTurnStartedAtEventId: Option.none(),
  agentTurnStartedAt: Option.none(),
  areCallsAbandoned: state.pendingCalls.length > 0,
  isInterruptRequested: false
})

const answer = (state: State, event: AssistantMessageEvent): Step => {
  const { content, runId, toolCalls: calls, usage } = event
  const isSameRun = state.run.id === runId
  const run = isSameRun ? state.run : newRun(runId)
  const unfinished = afterAnswer(run.unfinished, event)
  const reason = Option.getOrUndefined(unfinished)?.reason
  const isNothing = event.continues === true && calls.length === 0 && content.trim() === ""
  const text = event.continues ? state.lastText + content : reason === "empty" ? "" : content
  return {
    state: {
      ...state,
      pendingCalls: calls.map((call) => withMeaning(state.config.tools, call)),
      heldResults: {},
      unsaidCalls: calls.map(({ id }) => id),
      areCallsAbandoned: false,
      isAnswered: calls.length === 0 && (reason === undefined || reason === "contentFilter"),
      waitingCalls: {},
      lastText: text === "" && isSameRun ? state.lastText : text,
      flow: text === "" ? state.flow : Option.map(state.flow, (flow) => ({ ...flow, text })),
      run: { ...run, steps: run.steps + 1, usage: addUsage(run.usage, usage), unfinished }
    },
    said: [
      // `decide` asks for no answer while a call is pending; a log that has one all the same keeps its calls paired.
      ...withoutOutcome(state),
      // A model is not shown an answer that says nothing: providers refuse one, and reasoning alone as well.
      ...(reason === "empty" || isNothing ? [] : [messageOf(event)])
    ]
  }
}

const messageOf = (event: AssistantMessageEvent): Message => ({
  role: "assistant",
  content: [
    ...(event.content === "" ? [] : [{ type: "text" as const, text: event.content }]),
    ...event.toolCalls.map((call) => ({
      type: "tool-call" as const,
      id: call.id,
      name: call.name,
      params: call.arguments
    }))
  ],
  ...answeredBy(event)
})

/** The model and parts of an answer, if a later request to that model needs them. */
const answeredBy = ({ model, parts, toolCalls }: AssistantMessageEvent): { options?: Answered } => {
  if (parts !== undefined) return { options: { tropism: { model, parts } } }
  return toolCalls.length > 0 ? { options: { tropism: { model } } } : {}
}

/** A second outcome of a call, or one of a call that nobody made, says nothing to the model. */
const withOutcome = (
  state: State,
  callId: string,
  isFailure: boolean,
  result: Schema.Json,
  pictures?: ReadonlyArray<Picture>
): Step => {
  const call = state.pendingCalls.find(({ id }) => id === callId)
  if (!call) return silently(state)
  const { heldResults, said, unsaidCalls } = withResult(
    state,
    toolMessage(call, isFailure, result, pictures),
    callId
  )
  return {
    state: {
      ...state,
      pendingCalls: state.pendingCalls.filter(({ id }) => id !== callId),
      heldResults,
      unsaidCalls,
      waitingCalls: without(state.waitingCalls, callId)
    },
    said
  }
}
