/**
 * What a person is told of the turn that answers: the words, what the agent did, how it ended.
 *
 * Flow: http → **chat** → dispatch → run → tool → task
 *
 * A fold of the turn's events and nothing else, so the same answer is told
 * whoever asks for it again. Friendly sentences are made at its end and are kept
 * nowhere.
 */
import { type CarriedCall, lastFault, shownCall, withCalls } from "@tropism/domain/chat-calls"
import { chatResponse, type ToldAnswer } from "@tropism/domain/chat-sentences"
import type { LoggedEvent } from "@tropism/domain/context-event"
import type { ChatAnswer } from "@tropism/domain/conversation"
import type { ConversationId } from "@tropism/domain/ids"
import type { TurnRest } from "./turn-parts.ts"

/** What of an answer is there so far. */
export interface AnswerSoFar {
  /** What the agent said last. */
  readonly said: string
  readonly calls: ReadonlyArray<CarriedCall>
}

export const nothingYet: AnswerSoFar = { said: "", calls: [] }

/** Adds an event of the turn. */
export const withEvent = ({ calls, said }: AnswerSoFar, event: LoggedEvent): AnswerSoFar => ({
  said: wordsOf(event) || said,
  calls: withCalls(calls, event)
})

/** What was said of an answer that is whole, or was broken off. */
const wordsOf = (event: LoggedEvent): string => {
  if ("isUnknown" in event) return ""
  if (event.type === "AssistantMessageEvent") return event.content
  return event.type === "SoftStopEvent" || event.type === "AgentTurnInterruptedEvent"
    ? (event.partialText ?? "")
    : ""
}

/** The whole answer; `question` is what the agent asked and nobody has answered. */
export const chatAnswerOf = (
  conversationId: ConversationId,
  { calls, said }: AnswerSoFar,
  { ending, failure, runId, status }: TurnRest,
  question: ToldAnswer["question"]
): ChatAnswer => {
  const fault = lastFault(calls)
  return {
    conversationId,
    status,
    response: chatResponse({
      ending,
      failure,
      said,
      fault,
      hasActed: fault === undefined && calls.some(({ status }) => status === "completed"),
      question
    }),
    toolCalls: calls.map(shownCall),
    runId
  }
}
