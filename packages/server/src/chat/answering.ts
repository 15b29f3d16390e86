/**
 * What a person is told of the turn that answers: the words, what the agent did, how it ended.
 *
 * Flow: http → **chat** → dispatch → run → tool → task
 *
 * A fold of the turn's events and nothing else, so the same answer is told
 * whoever asks for it again. Friendly sentences are made at its end and are kept
 * nowhere.
 */
import { type CarriedCall, shownCall, withCalls } from "@tropism/domain/chat-calls"
import { chatResponse } from "@tropism/domain/chat-sentences"
import type { LoggedEvent } from "@tropism/domain/context-event"
import type { ChatAnswer } from "@tropism/domain/conversation"
import type { ConversationId } from "@tropism/domain/ids"
import { saidIn, type TurnRest } from "./turn-parts.ts"

/** What of an answer is there so far. */
export interface AnswerSoFar {
  /** What the agent said last. */
  readonly said: string
  readonly calls: ReadonlyArray<CarriedCall>
  /** Those of them since the agent's last words. */
  readonly unspoken: ReadonlyArray<CarriedCall>
}

export const nothingYet: AnswerSoFar = { said: "", calls: [], unspoken: [] }

/** Adds an event of the turn. */
export const withEvent = ({ calls, said, unspoken }: AnswerSoFar, event: LoggedEvent): AnswerSoFar => {
  const words = saidIn(event) ?? ""
  return {
    said: words || said,
    calls: withCalls(calls, event),
    unspoken: withCalls(words.trim() === "" ? unspoken : [], event)
  }
}

/** The whole answer. */
export const chatAnswerOf = (
  conversationId: ConversationId,
  { calls, said, unspoken }: AnswerSoFar,
  { ending, failure, questions, runId, status }: TurnRest
): ChatAnswer => {
  const toolCalls = calls.map(shownCall)
  return {
    conversationId,
    status,
    response: chatResponse({ ending, failure, said, unspoken, question: questions[0] }),
    toolCalls,
    runId,
    conversation_id: conversationId,
    tool_calls: toolCalls
  }
}
