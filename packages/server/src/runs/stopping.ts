/**
 * Carries out the decisions that end or pause a run, or ask it to stop.
 *
 * The last events of a run and the change of its state are one transaction. A run that received a message since the log was read continues
 * instead; the state then includes that message.
 */
import type { ReachedCap } from "@tropism/domain/chain"
import type { ReducedContext } from "@tropism/domain/context"
import type { NewEvent, SoftStopReason, TurnFailure } from "@tropism/domain/context-event"
import { nextStepOf } from "@tropism/domain/context-flow"
import { isUnderWay } from "@tropism/domain/decide"
import type { WaitsFor } from "@tropism/domain/event-base"
import { Clock, Effect, Option } from "effect"
import { CrashPoint } from "../crash-point.ts"
import type { ProjectTransaction } from "../database/database.ts"
import { makeRunLog, type Preparation } from "./appends.ts"
import type { RunNotInState } from "./fencing.ts"
import { type WaitReason, Runs } from "./run-store.ts"
import { refusalSentences, softStopSentences, summaryOf, underWay } from "./run-texts.ts"
import type { ClaimedRun } from "./run-types.ts"

/** The actions that end a run with its last append. */
const makeLastActs = Effect.gen(function* () {
  const { appendAndComplete, appendAndEnd, catchUp } = yield* makeRunLog

  /** Ends the run with its last append, unless a message has arrived since the log was read; then returns the state to continue with. */
  const over = Effect.fnUntraced(function* <E, R>(
    run: ClaimedRun,
    context: ReducedContext,
    ending: Effect.Effect<boolean, E, R>
  ) {
    yield* CrashPoint.hit("run.beforeComplete")
    const isOver = yield* ending
    yield* CrashPoint.hit("run.afterComplete")
    return isOver ? undefined : yield* catchUp(run, context)
  })

  const complete = Effect.fn("Actor.complete")(function* (
    run: ClaimedRun,
    context: ReducedContext,
    summary: string
  ) {
    const last = closingEvents(run, context, { type: "completed", durationMs: yield* durationMs(context) })
    return yield* over(run, context, appendAndComplete(run, context, last, { summary }))
  })

  const finish = Effect.fn("Actor.finish")(
    (
      run: ClaimedRun,
      context: ReducedContext,
      closing: Closing,
      end: Effect.Effect<void, RunNotInState, ProjectTransaction>,
      preparation?: Preparation
    ) =>
      over(run, context, appendAndEnd(run, context, closingEvents(run, context, closing), end, preparation))
  )

  return { complete, finish }
})

const waitReasons: Readonly<Record<WaitsFor, WaitReason>> = {
  run: "subAgents",
  person: "question",
  client: "toolResult"
}

export const makeStopping = Effect.gen(function* () {
  const runs = yield* Runs
  const { append, appendAndEnd, catchUp } = yield* makeRunLog
  const { complete, finish } = yield* makeLastActs

  const softStop = (run: ClaimedRun, context: ReducedContext, reason: SoftStopReason, partialText: string) =>
    append(
      run,
      context,
      [
        {
          type: "SoftStopEvent",
          reason,
          runId: run.id,
          content: softStopSentences[reason],
          ...(partialText === "" ? {} : { partialText })
        }
      ],
      reason === "timeout" ? { stop: "timedOut" } : {}
    )

  /**
   * Ends the open turn but not the run: a message or a person interrupted it, or its actor died, and its session with it.
   *
   * **Details** Calls that were requested but not made end with their turn, in the same append; the calls of a dead actor are left to the
   * next one.
   */
  const interrupt = (
    run: ClaimedRun,
    context: ReducedContext,
    reason: "crash" | "message" | "user",
    partialText: string,
    isOrphaned = false
  ) =>
    append(
      run,
      context,
      [
        ...(reason === "crash" ? [] : abandonedCalls(context)),
        {
          type: "AgentTurnInterruptedEvent",
          turnNumber: context.currentTurnNumber,
          reason,
          ...(partialText === "" ? {} : { partialText })
        },
        ...(isOrphaned ? nextSession(context) : [])
      ],
      partialText === "" ? {} : { stop: "brokenOff" }
    )

  /** Pauses the run at a limit; a message that arrived during its last request resumes it at once, like a later one. */
  const pause = Effect.fnUntraced(function* (
    run: ClaimedRun,
    context: ReducedContext,
    reason: SoftStopReason | "budget",
    partialText = ""
  ) {
    const said = partialText === "" ? lastWordsOf(run, context) : partialText
    const rest = runs.pause(run, reason, summaryOf(said))
    const end = context.isTurnDue ? Effect.andThen(rest, runs.resumeOn(run.contextName)) : rest
    return yield* finish(run, context, { type: "interrupted", reason, partialText }, Effect.asVoid(end))
  })

  /** Pauses the run because no budget is left for its next request. */
  const restSpent = (run: ClaimedRun, context: ReducedContext, { reason }: ReachedCap) =>
    finish(
      run,
      context,
      { type: "interrupted", reason: "budget" },
      runs.pause(run, "budget", summaryOf(lastWordsOf(run, context)), reason)
    )

  /** Pauses the run until the outcomes that it waits for arrive, unless one has arrived since the log was read. */
  const wait = Effect.fnUntraced(function* (run: ClaimedRun, context: ReducedContext, what: WaitsFor) {
    const end = runs.wait(run, waitReasons[what])
    const isOver = yield* appendAndEnd(run, context, [], end)
    yield* CrashPoint.hit("run.afterWait")
    return isOver ? undefined : yield* catchUp(run, context)
  })

  const fail = (run: ClaimedRun, context: ReducedContext, error: string, reason: TurnFailure) =>
    finish(
      run,
      context,
      { type: "failed", error, reason },
      runs.fail(run, reason, error, summaryOf(lastWordsOf(run, context))),
      { first: runs.holdToFail(run) }
    )

  return { complete, finish, interrupt, softStop, pause, restSpent, wait, fail }
})

/** Returns the outcomes of calls that were never made, or whose actor died. */
const abandonedCalls = (context: ReducedContext): ReadonlyArray<NewEvent> =>
  context.pendingCalls.map(({ id, name }) => ({
    type: "ToolCallFailedEvent",
    callId: id,
    tool: name,
    error: isUnderWay(context, id) ? underWay : { error: refusalSentences.abandoned, reason: "abandoned" }
  }))

/** Returns the duration of the open turn. */
export const durationMs = Effect.fnUntraced(function* (context: ReducedContext) {
  const now = yield* Clock.currentTimeMillis
  return Option.match(context.agentTurnStartedAt, {
    onNone: () => 0,
    onSome: (start) => Math.max(0, now - new Date(start).getTime())
  })
})

// Builds the closing events of a run.
//
// Every call gets an outcome and every turn and session an end, however the run ended, so no later reader of the log finds anything half
// open.

/** How a run ends. */
export type Closing =
  | {
      readonly type: "interrupted"
      readonly reason: "cancelled" | "stepLimit" | "timeout" | "budget" | "forked" | "user"
      /** The text of an answer that broke off. */
      readonly partialText?: string | undefined
    }
  | Failed
  | { readonly type: "completed"; readonly durationMs: number }

/** A run that fails. */
export interface Failed {
  readonly type: "failed"
  readonly error: string
  /** Absent when its workers died, and its session with them. */
  readonly reason?: TurnFailure
}

/** Returns the last text of a run in its log; a conversation may also hold the text of other runs. */
export const lastWordsOf = (
  run: { readonly id: string },
  { lastText, run: { id } }: ReducedContext
): string => (id === run.id ? lastText : "")

/** Whether the log is the run's own and ends with it; a conversation's log continues. */
const hasOwnLog = ({ contextName, id }: LogOfRun): boolean => contextName === `run-${id}`

/** A run and its context. */
export interface LogOfRun {
  readonly id: string
  readonly contextName: string
}

/**
 * Returns the events that close everything open when a run ends or pauses at a limit; the session of a conversation continues (S004-R41).
 */
export const closingEvents = (
  run: LogOfRun,
  context: ReducedContext,
  closing: Closing
): ReadonlyArray<NewEvent> => [
  ...turnClosing(context, closing),
  ...(context.isSessionOpen && hasOwnLog(run) ? [sessionEnd(false)] : [])
]

/** Returns the events that close everything open in a fork's log, and begin its session. */
export const forkClosing = (context: ReducedContext): ReadonlyArray<NewEvent> => [
  ...turnClosing(context, { type: "interrupted", reason: "forked" }),
  ...nextSession(context, false)
]

/** Returns the events that close the open turn and its calls. */
export const turnClosing = (context: ReducedContext, closing: Closing): ReadonlyArray<NewEvent> => [
  ...context.pendingCalls.map((call): NewEvent => ({
    type: "ToolCallFailedEvent",
    callId: call.id,
    tool: call.name,
    error: isUnderWay(context, call.id)
      ? underWay
      : {
          error: Object.hasOwn(context.waitingCalls, call.id)
            ? "The run ended before the outcome of this call came"
            : "The run ended before this call was made",
          reason: "runEnded"
        }
  })),
  ...(Option.isSome(context.agentTurnStartedAtEventId) ? [turnEnd(context.currentTurnNumber, closing)] : [])
]

/**
 * Returns the events after those that closed the turn of a failing run.
 *
 * **Details** Messages without a turn that no other run answers get a turn of their own that fails, so people read the failure where they
 * expect the answer.
 */
export const failedEnd = (
  run: LogOfRun,
  context: ReducedContext,
  closing: Failed,
  isAnsweredLate: boolean
): ReadonlyArray<NewEvent> => {
  const { isSessionOpen } = context
  const isUnanswered = !isAnsweredLate && isTurnMissing(context)
  const turnNumber = context.currentTurnNumber + 1
  const isCrash = isSessionOpen && closing.reason === undefined
  return [
    ...(isUnanswered
      ? [{ type: "AgentTurnStartedEvent", turnNumber } as const, turnEnd(turnNumber, closing)]
      : []),
    ...(isCrash || ((isUnanswered || isSessionOpen) && hasOwnLog(run)) ? [sessionEnd(isCrash)] : [])
  ]
}

/** Whether a turn is due that has not begun: a first one, or that of the next step. */
const isTurnMissing = (context: ReducedContext): boolean =>
  context.isTurnDue || (Option.isNone(context.agentTurnStartedAtEventId) && nextStepOf(context) !== undefined)

/** Returns the start of the new actor's session; ends the session of a dead actor first (S004-R40…R42). */
export const nextSession = ({ isSessionOpen }: ReducedContext, isCrash = true): ReadonlyArray<NewEvent> => [
  ...(isSessionOpen ? [sessionEnd(isCrash)] : []),
  { type: "SessionStartedEvent" }
]

const sessionEnd = (isCrash: boolean): NewEvent => ({
  type: "SessionEndedEvent",
  ...(isCrash ? { reason: "crash" } : {})
})

const turnEnd = (turnNumber: number, closing: Closing): NewEvent => {
  switch (closing.type) {
    case "completed":
      return { type: "AgentTurnCompletedEvent", turnNumber, durationMs: closing.durationMs }
    case "failed":
      return {
        type: "AgentTurnFailedEvent",
        turnNumber,
        error: closing.error,
        ...(closing.reason === undefined ? {} : { reason: closing.reason })
      }
    case "interrupted":
      return {
        type: "AgentTurnInterruptedEvent",
        turnNumber,
        reason: closing.reason,
        ...(closing.partialText ? { partialText: closing.partialText } : {})
      }
  }
}
