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
import type { NewEvent, TurnFailure } from "@tropism/domain/context-event"
import { isUnderWay } from "@tropism/domain/decide"
import { Option } from "effect"
import { underWay } from "./sentences.ts"

/** How a run ends. */
export type Closing =
  | {
      readonly type: "interrupted"
      readonly reason: "crash" | "cancelled" | "stepLimit" | "timeout" | "budget" | "forked"
      /** What the model had said of an answer that was broken off. */
      readonly partialText?: string | undefined
    }
  | { readonly type: "failed"; readonly error: string; readonly reason: TurnFailure }
  | { readonly type: "completed"; readonly durationMs: number }

/** What a run has said last in its log; a conversation may hold other runs' words. */
export const lastWordsOf = (
  run: { readonly id: string },
  { lastText, run: { id } }: ReducedContext
): string => (id === run.id ? lastText : "")

/** The events that close whatever is open. */
export const closingEvents = (context: ReducedContext, closing: Closing): ReadonlyArray<NewEvent> => {
  const turnNumber = context.currentTurnNumber
  return [
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
    ...(Option.isSome(context.agentTurnStartedAtEventId) ? [turnEnd(turnNumber, closing)] : []),
    ...(context.isSessionOpen
      ? [sessionEnd(closing.type === "interrupted" && closing.reason === "crash")]
      : [])
  ]
}

/** The session of the actor that comes now; where one that died has left its own open, that ends first (S004-R40…R42). */
export const nextSession = ({ isSessionOpen }: ReducedContext): ReadonlyArray<NewEvent> => [
  ...(isSessionOpen ? [sessionEnd(true)] : []),
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
      return { type: "AgentTurnFailedEvent", turnNumber, error: closing.error, reason: closing.reason }
    case "interrupted":
      return {
        type: "AgentTurnInterruptedEvent",
        turnNumber,
        reason: closing.reason,
        ...(closing.partialText ? { partialText: closing.partialText } : {})
      }
  }
}
