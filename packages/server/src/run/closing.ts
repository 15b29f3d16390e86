/**
 * The last words of a run.
 *
 * Flow: graph → outbox → dispatch → **run** → tool → task
 *
 * Every call has an outcome, every turn an end and every session an end, however
 * the run ended: whoever folds the log later, or goes on with the same context,
 * finds nothing half open.
 */
import type { ReducedContext } from "@tropism/domain/context"
import { nextStepOf } from "@tropism/domain/context-flow"
import type { NewEvent, TurnFailure } from "@tropism/domain/context-event"
import { isUnderWay } from "@tropism/domain/decide"
import { Option } from "effect"
import { underWay } from "./sentences.ts"

/** How a run ends. */
export type Closing =
  | {
      readonly type: "interrupted"
      readonly reason: "cancelled" | "stepLimit" | "timeout" | "budget" | "forked" | "user"
      /** What the model had said of an answer that was broken off. */
      readonly partialText?: string | undefined
    }
  | Failed
  | { readonly type: "completed"; readonly durationMs: number }

/** A run that fails. */
export interface Failed {
  readonly type: "failed"
  readonly error: string
  /** Absent where its workers died, and its session with them. */
  readonly reason?: TurnFailure
}

/** What a run has said last in its log; a conversation may hold other runs' words. */
export const lastWordsOf = (
  run: { readonly id: string },
  { lastText, run: { id } }: ReducedContext
): string => (id === run.id ? lastText : "")

/** Whether a log is the run's own, and over with it; that of a conversation goes on. */
const hasOwnLog = ({ contextName, id }: LogOfRun): boolean => contextName === `run-${id}`

/** A run and the context that it works in. */
export interface LogOfRun {
  readonly id: string
  readonly contextName: string
}

/** The events that close whatever is open when a run ends or rests at a limit; the session of a conversation goes on (S004-R41). */
export const closingEvents = (
  run: LogOfRun,
  context: ReducedContext,
  closing: Closing
): ReadonlyArray<NewEvent> => [
  ...turnClosing(context, closing),
  ...(context.isSessionOpen && hasOwnLog(run) ? [sessionEnd(false)] : [])
]

/** What is open where a context is forked, closed in the fork's own log, and the session that begins there. */
export const forkClosing = (context: ReducedContext): ReadonlyArray<NewEvent> => [
  ...turnClosing(context, { type: "interrupted", reason: "forked" }),
  ...nextSession(context, false)
]

/** The events that close the open turn and its calls. */
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
 * The events behind those that have closed the turn of a run that fails.
 *
 * **Details** What no turn has begun for, and no other run answers, has a turn of
 * its own that fails: people read what became of it where they read the answer.
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

/** Whether somebody waits for a turn that has not begun: for a first one, or for that of the next step. */
const isTurnMissing = (context: ReducedContext): boolean =>
  context.isTurnDue || (Option.isNone(context.agentTurnStartedAtEventId) && nextStepOf(context) !== undefined)

/** The session of the actor that comes now; where one that died has left its own open, that ends first (S004-R40…R42). */
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
