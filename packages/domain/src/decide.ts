/**
 * The decider: what an actor does next, given what its log says.
 *
 * `decide` is pure, so a run that is taken over by another worker goes on
 * exactly where the log ends. Steps, time, repetitions and flows are judged
 * here, before anything is asked or called; `server/run` performs.
 */
import { Option } from "effect"
import type { ReducedContext } from "./context.ts"
import { nextStepOf } from "./context-flow.ts"
import type { SoftStopReason } from "./context-event.ts"
import { findSummaryDue } from "./context-window.ts"
import { madeCall } from "./defined-tool.ts"
import { WaitsFor } from "./event-base.ts"
import { type FlowPlace, type FlowPlan, nextPlace } from "./flow.ts"
import type { ToolCall } from "./message.ts"
import { areNotesDue } from "./notes-due.ts"
import { sequelOf } from "./unfinished.ts"
import {
  findLoopWarning,
  type LoopWarning,
  type Repetition,
  repetitionBounds,
  timesInARow,
  withCall
} from "./repetition.ts"

/** Why a call is not made. */
export type RefusalReason =
  /** The run was asked to stop. */
  | "softStop"
  /** Its turn or its run has ended since. */
  | "abandoned"
  /** It was made too often in a row (S002-R33). */
  | "doomLoop"

export type Decision =
  /** A trigger waits and no turn is open. */
  | { readonly type: "startTurn"; readonly turnNumber: number }
  /** The flow goes on with a step. */
  | { readonly type: "startStep"; readonly place: FlowPlace }
  /** Triggers come one after another: wait until it is quiet, or for as long as anybody should (S004-R39). */
  | { readonly type: "debounce"; readonly untilMs: number }
  /** A turn is open that this attempt did not open, for its worker died; or somebody spoke during it, or wants it to end. */
  | {
      readonly type: "interruptTurn"
      readonly turnNumber: number
      readonly reason: "crash" | "message" | "user"
    }
  | { readonly type: "requestModel"; readonly withTools: boolean }
  /** The window is full: a model sums up what it lets go of before it is asked. */
  | { readonly type: "summarize" }
  /** Enough was said since the last notes: a model makes new ones, for the agent's other contexts. */
  | { readonly type: "takeNotes" }
  /** A call is made, and beside it any of the calls after it that their tools allow. */
  | { readonly type: "callTool"; readonly call: ToolCall; readonly beside: ReadonlyArray<ToolCall> }
  | { readonly type: "refuseTool"; readonly call: ToolCall; readonly reason: RefusalReason }
  /** Every pending call was made, and others bring the outcomes: runs first, then people, then clients. */
  | { readonly type: "wait"; readonly for: WaitsFor }
  /** The run has used its steps or its time: say so to the model before its last request. */
  | { readonly type: "softStop"; readonly reason: SoftStopReason }
  /** The agent goes round in circles: say so to the model before it is asked again. */
  | { readonly type: "warn"; readonly reason: LoopWarning }
  /** The last request after a soft stop is answered, or its grace is over. */
  | { readonly type: "pause"; readonly reason: "stepLimit" | "timeout" | "budget" }
  /** The agent did not stop to repeat itself (S002-R35). */
  | { readonly type: "fail"; readonly reason: "doomLoop"; readonly call: ToolCall; readonly times: number }
  /** The model's answer is none, and asking again would bring none. */
  | { readonly type: "fail"; readonly reason: "contentFilter" | "emptyAnswer" }
  /** The answer reached the limit of output tokens: tell the model to go on before it is asked again. */
  | { readonly type: "goOn" }
  | { readonly type: "completeTurn"; readonly text: string }
  /** Nothing is left to do. */
  | { readonly type: "finish"; readonly text: string }

/** How triggers of a conversation are gathered. */
export interface Debounce {
  readonly nowMs: number
  /** A turn begins so long after the last trigger, */
  readonly quietMs: number
  /** and no longer after the first: a steady stream does not starve it. */
  readonly maxWaitMs: number
}

export interface DecisionInput {
  readonly context: ReducedContext
  readonly runId: string
  /** The turn that this attempt opened, if it opened one. */
  readonly ownTurnNumber: number | undefined
  /** Null is unbounded (S002-R19). */
  readonly maxSteps: number | null
  /** The run has used its time (S002-R26). */
  readonly isTimeUp?: boolean
  /** The time that the last request after a soft stop may take is over (S002-R29). */
  readonly isGraceOver?: boolean
  /** Of a conversation, whose workflow the context sets; absent where a turn begins at once. */
  readonly debounce?: Debounce | undefined
  /** What the run has to go through; absent for a single flow and for a conversation. */
  readonly flow?: FlowPlan | undefined
  /** Whether a tool may be called again and again with the same arguments. */
  readonly mayRepeat?: (tool: string) => boolean
  /** Somebody set how many tokens an answer may have: one that reaches that ends there. */
  readonly isOutputLimited?: boolean
}

export const decide = (input: DecisionInput): Decision => {
  const { context, isGraceOver = false, isTimeUp = false, maxSteps, ownTurnNumber, runId } = input
  const isOwnRun = context.run.id === runId
  const text = isOwnRun ? context.lastText : ""
  const turnNumber = context.currentTurnNumber
  if (Option.isNone(context.agentTurnStartedAtEventId)) return betweenTurns(input, isOwnRun, text)
  // What a person wants outlives the worker that was to do it.
  if (context.isInterruptRequested) return toInterrupt(context, "user")
  if (ownTurnNumber !== turnNumber) return { type: "interruptTurn", turnNumber, reason: "crash" }
  const stopped = isOwnRun ? Option.getOrUndefined(context.run.softStop) : undefined
  // A complete answer ends its turn, however late it came; what was asked meanwhile has a turn of its own.
  if (isTimeUp && stopped === undefined && !isComplete(context))
    return { type: "softStop", reason: "timeout" }
  if (context.isTriggered && stopped === undefined && !isComplete(context))
    return toInterrupt(context, "message")
  if (context.pendingCalls.length > 0) return withCalls(input, isOwnRun, stopped !== undefined)
  const unfinished = isOwnRun ? Option.getOrUndefined(context.run.unfinished) : undefined
  const sequel = unfinished && sequelOf(unfinished, input.isOutputLimited ?? false)
  if (sequel === "contentFilter") return { type: "fail", reason: sequel }
  if (stopped) {
    const isAnswered = context.run.steps > stopped.steps
    return isAnswered || isGraceOver
      ? { type: "pause", reason: stopped.reason }
      : { type: "requestModel", withTools: false }
  }
  if (context.isAnswered || sequel === "complete") return { type: "completeTurn", text }
  if (sequel === "emptyAnswer") return { type: "fail", reason: sequel }
  const steps = isOwnRun ? context.run.steps - context.run.stepsBeforeResume : 0
  if (maxSteps !== null && steps >= maxSteps) return { type: "softStop", reason: "stepLimit" }
  const reason = findLoopWarning(context.repetition, input.mayRepeat ?? never)
  if (reason) return { type: "warn", reason }
  if (sequel === "goOn") return { type: sequel }
  return findSummaryDue(context) ? { type: "summarize" } : { type: "requestModel", withTools: true }
}

/** A call that was begun and has no outcome, which nobody brings later: whoever made it died, or works on it still. */
export const isUnderWay = (
  { repetition, waitingCalls }: Pick<ReducedContext, "repetition" | "waitingCalls">,
  callId: string
): boolean => repetition.recent.some(({ id }) => id === callId) && !Object.hasOwn(waitingCalls, callId)

const never = () => false

/** The first of those who bring outcomes: the run rests for one reason at a time. */
const waitedFor = (all: ReadonlyArray<WaitsFor>): WaitsFor =>
  WaitsFor.literals.find((each) => all.includes(each)) ?? "person"

/** Somebody ends the turn: nobody waits any more for what others were to bring, and then it is over. */
const toInterrupt = (
  { currentTurnNumber, pendingCalls, waitingCalls }: ReducedContext,
  reason: "message" | "user"
): Decision => {
  const call = pendingCalls.find(({ id }) => Object.hasOwn(waitingCalls, id))
  return call
    ? { type: "refuseTool", call, reason: "abandoned" }
    : { type: "interruptTurn", turnNumber: currentTurnNumber, reason }
}

/** No turn is open: a trigger, the next step of the flow, or the end. */
const betweenTurns = (
  { context, debounce, flow }: DecisionInput,
  isOwnRun: boolean,
  text: string
): Decision => {
  const place = debounce ? nextStepOf(context) : flow && nextPlace(flow, context.flow)
  if (context.isTurnDue) {
    // A step that has begun waits for nobody; what is asked anew is worked through from the first.
    const isGathered = context.isStepDue && !context.isAsked
    const untilMs = debounce && !isGathered ? quietFrom(context, debounce) : undefined
    if (untilMs !== undefined) return { type: "debounce", untilMs }
    return debounce && context.isAsked && place
      ? { type: "startStep", place }
      : { type: "startTurn", turnNumber: context.currentTurnNumber + 1 }
  }
  const paused = isOwnRun ? Option.getOrUndefined(context.run.pausedFor) : undefined
  if (paused) return { type: "pause", reason: paused }
  if (place) return { type: "startStep", place }
  return areNotesDue(context) ? { type: "takeNotes" } : { type: "finish", text }
}

const isComplete = ({ isAnswered, pendingCalls }: ReducedContext): boolean =>
  isAnswered && pendingCalls.length === 0

/** Until when more triggers are waited for; a trigger of a clock that is ahead of this one is waited for no longer. */
const quietFrom = (
  { triggeredAt }: ReducedContext,
  { maxWaitMs, nowMs, quietMs }: Debounce
): number | undefined => {
  if (Option.isNone(triggeredAt)) return undefined
  const [first, last] = [triggeredAt.value.first, triggeredAt.value.last].map((at) => new Date(at).getTime())
  if (first === undefined || last === undefined || last > nowMs + quietMs) return undefined
  const untilMs = Math.min(last + quietMs, first + maxWaitMs)
  return untilMs > nowMs ? untilMs : undefined
}

/** The pending calls that nobody has made yet, up to the first that is refused; where all were made, the run waits. */
const withCalls = (
  { context, mayRepeat = never }: DecisionInput,
  isOwnRun: boolean,
  isStopped: boolean
): Decision => {
  const reason = context.areCallsAbandoned || !isOwnRun ? "abandoned" : isStopped ? "softStop" : undefined
  const isWaiting = (call: ToolCall) => Object.hasOwn(context.waitingCalls, call.id)
  const [call, ...others] = context.pendingCalls.filter(
    (pending) => reason !== undefined || !isWaiting(pending)
  )
  if (!call) return { type: "wait", for: waitedFor(Object.values(context.waitingCalls)) }
  if (reason) return { type: "refuseTool", call, reason }
  const { isMade, repetition, times } = repeated(context.repetition, call, mayRepeat)
  if (isMade || times < repetitionBounds.warnAt)
    return { type: "callTool", call, beside: callable(others, repetition, mayRepeat) }
  return times < repetitionBounds.failAt
    ? { type: "refuseTool", call, reason: "doomLoop" }
    : { type: "fail", reason: "doomLoop", call, times }
}

/** How often a call comes in a row, and what is known of repetitions once it is made. */
const repeated = (before: Repetition, call: ToolCall, mayRepeat: (tool: string) => boolean) => {
  const made = madeCall(call)
  const isMade = before.recent.some(({ id }) => id === call.id)
  return {
    isMade,
    repetition: isMade ? before : withCall(before, made),
    times: mayRepeat(made.name) ? 1 : timesInARow(before, made)
  }
}

/** The calls up to the first that comes too often, each judged as if those before it had been made. */
const callable = (
  calls: ReadonlyArray<ToolCall>,
  before: Repetition,
  mayRepeat: (tool: string) => boolean
): ReadonlyArray<ToolCall> => {
  let known = before
  const refusedAt = calls.findIndex((call) => {
    const { isMade, repetition, times } = repeated(known, call, mayRepeat)
    known = repetition
    return !isMade && times >= repetitionBounds.warnAt
  })
  return refusedAt < 0 ? calls : calls.slice(0, refusedAt)
}
