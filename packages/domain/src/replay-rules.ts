/**
 * What each kind of event must say, and when it can come, given the log before it.
 *
 * An event attests what came from outside: that a limit was reached, a clock ran
 * out, a worker died. The pure decider is asked with that; where it decides
 * otherwise in every state in which it may have been asked, the event could not
 * have been written. What follows from the log is answered, to be compared.
 */
import { Option } from "effect"
import type { ContextEvent } from "./context-event.ts"
import { nextStepOf } from "./context-flow.ts"
import { findSummaryDue } from "./context-window.ts"
import { type Decision, decide, type DecisionInput } from "./decide.ts"
import type { ReducedContext } from "./reduced-context.ts"

/** A state in which what was written may have been decided, and the one in which it was written. */
export interface Standpoint {
  readonly context: ReducedContext
  readonly now: ReducedContext
}

/** The fields of an event that follow from the log. */
export type Derived = Readonly<Record<string, unknown>>

/** What an event may say, decided in one state or another, the newest first; nothing where none of its kind could come. */
export const derive = (standpoints: ReadonlyArray<Standpoint>, event: ContextEvent): ReadonlyArray<Derived> =>
  standpoints.toReversed().flatMap((standpoint) => {
    const derived = deriveFrom(standpoint, event)
    return derived === undefined ? [] : [derived]
  })

type Facts = Partial<Omit<DecisionInput, "context">>

/** What the decider may have decided in a state, given what an event attests; whose run it was, which tools may be repeated and whether output is limited is not in the log. */
const decisionsOf = ({ context }: Standpoint, facts: Facts = {}): ReadonlyArray<Decision> =>
  [context.run.id, ""].flatMap((runId) =>
    [false, true].flatMap((mayRepeat) =>
      [false, true].map((isOutputLimited) =>
        decide({
          context,
          runId,
          ownTurnNumber: context.currentTurnNumber,
          maxSteps: null,
          mayRepeat: () => mayRepeat,
          isOutputLimited,
          ...facts
        })
      )
    )
  )

const silent: Derived = { triggersAgentTurn: false }

const deriveFrom = (standpoint: Standpoint, event: ContextEvent): Derived | undefined => {
  const { context, now } = standpoint
  const isTurnOpen = Option.isSome(now.agentTurnStartedAtEventId)
  const when = (isSo: boolean, more: Derived = {}) => (isSo ? { ...silent, ...more } : undefined)
  const decides = (does: (decision: Decision) => boolean, facts?: Facts) =>
    decisionsOf(standpoint, facts).some(does)
  switch (event.type) {
    case "SessionStartedEvent":
      return when(!now.isSessionOpen)
    case "SessionEndedEvent":
      // The calls of an actor that died are for the next one.
      return when(
        now.isSessionOpen && !isTurnOpen && (event.reason === "crash" || now.pendingCalls.length === 0)
      )
    case "AgentTurnStartedEvent":
      // A step that cannot be begun has a turn that fails.
      return when(
        !isTurnOpen && (decides(({ type }) => type === "startTurn") || nextStepOf(now) !== undefined),
        { turnNumber: now.currentTurnNumber + 1 }
      )
    case "AgentTurnCompletedEvent":
      return when(isTurnOpen && decides(({ type }) => type === "completeTurn"), {
        turnNumber: now.currentTurnNumber
      })
    case "AgentTurnFailedEvent":
      return when(isTurnOpen, { turnNumber: now.currentTurnNumber })
    case "AgentTurnInterruptedEvent": {
      // In a log of an earlier version calls may wait still when their turn ends.
      const resting: Standpoint = { ...standpoint, context: { ...context, waitingCalls: {} } }
      const interrupts: Decides = (does, facts) => decisionsOf(resting, facts).some(does)
      return when(isTurnOpen && mayInterrupt(event.reason, interrupts), { turnNumber: now.currentTurnNumber })
    }
    case "GuardVerdictEvent":
    case "AssistantMessageEvent":
      return when(decides(({ type }) => type === "requestModel", { runId: event.runId }))
    case "SoftStopEvent":
      return when(decides(stopsFor(event.reason), factsOfStop[event.reason]))
    case "ContextSummarizedEvent": {
      const cut = findSummaryDue(context)
      const isDue = decides(({ type }) => type === "summarize", { runId: event.runId })
      return cut && when(isDue, { messages: context.droppedMessages + cut.index })
    }
    case "LoopWarningEvent":
      return when(decides((decision) => decision.type === "warn" && decision.reason === event.reason))
    case "ContinuationRequestedEvent":
      return when(decides(({ type }) => type === "goOn"))
    case "FlowStepStartedEvent":
      return when(!isTurnOpen && isNextPlace(now, event), { triggersAgentTurn: true })
    case "ToolCallStartedEvent":
      return startedCall(standpoint, event)
    case "ToolCallCompletedEvent":
    case "ToolCallFailedEvent": {
      const call = now.pendingCalls.find(({ id }) => id === event.callId)
      return call && when(true, { callId: call.id, tool: call.name })
    }
    default:
      return {}
  }
}

type Decides = (does: (decision: Decision) => boolean, facts?: Facts) => boolean

type Interruption = Extract<ContextEvent, { readonly type: "AgentTurnInterruptedEvent" }>["reason"]

/** Whether the open turn could be broken off for a reason; a person, a fork or the end of its run need no decision. */
const mayInterrupt = (reason: Interruption, decides: Decides): boolean => {
  switch (reason) {
    case "cancelled":
    case "forked":
    case "crash":
      return true
    case "message":
    case "user":
      return decides((decision) => decision.type === "interruptTurn" && decision.reason === reason)
    case "stepLimit":
    case "timeout":
      return decides((decision) => decision.type === "pause" && decision.reason === reason, {
        isGraceOver: true
      })
    case "budget":
      return decides(({ type }) => type === "requestModel" || type === "summarize")
  }
}

type StopReason = Extract<ContextEvent, { readonly type: "SoftStopEvent" }>["reason"]

/** A limit that was reached is one that allowed no more than there was. */
const factsOfStop: Readonly<Record<StopReason, Facts>> = {
  stepLimit: { maxSteps: 0 },
  timeout: { isTimeUp: true }
}

const stopsFor = (reason: StopReason) => (decision: Decision) =>
  decision.type === "softStop" && decision.reason === reason

/** The call of this event, or the first where it is none that may be made, as the model asked for it. */
const startedCall = (
  standpoint: Standpoint,
  {
    arguments: made,
    callId,
    coerced,
    standsFor: stoodFor
  }: Extract<ContextEvent, { readonly type: "ToolCallStartedEvent" }>
): Derived | undefined => {
  for (const decision of decisionsOf(standpoint)) {
    if (decision.type !== "callTool") continue
    const wanted = decision.beside.find(({ id }) => id === callId) ?? decision.call
    const { arguments: args, id, name, standsFor } = wanted
    const call = { ...silent, callId: id, tool: name }
    // By which schema arguments were put right is not in the log.
    if (coerced !== undefined)
      return { ...call, arguments: made, standsFor: stoodFor, coerced: { ...coerced, sent: args } }
    return {
      ...call,
      arguments: args,
      standsFor: standsFor && { tool: standsFor.tool, arguments: standsFor.arguments }
    }
  }
  return undefined
}

type Place = Pick<Extract<ContextEvent, { readonly type: "FlowStepStartedEvent" }>, "index" | "iteration">

/** A flow goes on with its next step, begins its next iteration, or begins anew. */
const isNextPlace = ({ flow }: ReducedContext, { index, iteration }: Place): boolean => {
  if (index === 0 && iteration === 1) return true
  return Option.exists(flow, (before) =>
    index === 0
      ? iteration === before.iteration + 1
      : index === before.index + 1 && iteration === before.iteration
  )
}
