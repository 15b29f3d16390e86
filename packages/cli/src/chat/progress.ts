/**
 * How far an agent is with what was said, as the events of its context tell.
 *
 * Pure: one event moves it on. An agent is at rest when no turn is open
 * and nothing that wants an answer came since; a question to a person is a rest
 * of its own, which an answer ends.
 */
import type { ContextFeedEvent } from "@tropism/client/feed"
import { failedResponse } from "@tropism/domain/chat-sentences"
import { type Reading, readEvent, readingAfter } from "@tropism/domain/conversation-reading"
import { Predicate } from "effect"

/** A question that waits for an answer. */
export interface Question {
  readonly callId: string
  readonly text: string
  readonly options: ReadonlyArray<string>
}

/** How the last turn ended. */
export type TurnEnd =
  | { readonly type: "completed" }
  /** What a person is told of it; the log has what went wrong. */
  | { readonly type: "failed"; readonly told: string }
  | { readonly type: "interrupted" }
  | { readonly type: "paused"; readonly reason: string }

export interface Progress {
  readonly isTurnOpen: boolean
  /** Something wants an answer, and no turn has begun for it. */
  readonly isDue: boolean
  readonly questions: ReadonlyArray<Question>
  readonly lastEnd: TurnEnd | undefined
  /** The open turn as a person reads it. */
  readonly reading: Reading
}

/** Nothing is read yet. */
export const unread: Reading = readingAfter(0)

/** What a person is told of a failure of which no more is known. */
export const toldOfBreaking: string = failedResponse(undefined, null)

/** Between the turns of a workflow it looks so, too: whether its run is over says the run. */
export const isAtRest = ({ isDue, isTurnOpen }: Progress): boolean => !isDue && !isTurnOpen

export const advance = (before: Progress, event: ContextFeedEvent): Progress => {
  if ("delta" in event) return before
  const { reading, told } = readEvent(before.reading, event)
  const progress = { ...before, reading, isDue: before.isDue || event.triggersAgentTurn }
  switch (event.type) {
    case "AgentTurnStartedEvent":
      return { ...progress, isTurnOpen: true, isDue: false }
    case "AgentTurnCompletedEvent":
    case "AgentTurnFailedEvent":
    case "AgentTurnInterruptedEvent":
      return {
        ...progress,
        isTurnOpen: false,
        questions: [],
        lastEnd: endOf(event, told?.message.content ?? toldOfBreaking) ?? progress.lastEnd
      }
    case "ToolCallStartedEvent": {
      const question = "waitsFor" in event && event.waitsFor === "person" ? questionOf(event) : undefined
      return question ? { ...progress, questions: [...progress.questions, question] } : progress
    }
    case "ToolCallCompletedEvent":
    case "ToolCallFailedEvent": {
      const { callId } = "callId" in event ? event : { callId: "" }
      return { ...progress, questions: progress.questions.filter((each) => each.callId !== callId) }
    }
    default:
      return progress
  }
}

const endOf = (event: ContextFeedEvent, told: string): TurnEnd | undefined => {
  if (event.type === "AgentTurnFailedEvent") return { type: "failed", told }
  if (event.type !== "AgentTurnInterruptedEvent" || !("reason" in event)) return { type: "completed" }
  const { reason } = event
  if (reason === "user" || reason === "cancelled") return { type: "interrupted" }
  return reason === "stepLimit" || reason === "timeout" || reason === "budget"
    ? { type: "paused", reason }
    : undefined
}

const questionOf = ({
  arguments: args,
  callId
}: {
  readonly arguments: unknown
  readonly callId: string
}) => ({
  callId,
  text: Predicate.hasProperty(args, "question") ? String(args.question) : "",
  options:
    Predicate.hasProperty(args, "options") && Array.isArray(args.options) ? args.options.map(String) : []
})
