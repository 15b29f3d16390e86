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
import { AssistantMessageEvent, type LoggedEvent } from "@tropism/domain/context-event"
import { type ChatAnswer, type CutReason, isCutReason } from "@tropism/domain/conversation"
import type { ConversationId } from "@tropism/domain/ids"
import { saidIn, type TurnRest } from "./turn-parts.ts"

/** What of an answer is there so far. */
export interface AnswerSoFar {
  /** What the agent said last. */
  readonly said: string
  /** Why that is not whole; undefined where it is. */
  readonly finishReason: CutReason | undefined
  readonly calls: ReadonlyArray<CarriedCall>
  /** Those of them since the agent's last words. */
  readonly unspoken: ReadonlyArray<CarriedCall>
}

export const nothingYet: AnswerSoFar = { said: "", finishReason: undefined, calls: [], unspoken: [] }

/** Adds an event of the turn. */
export const withEvent = (
  { calls, finishReason, said, unspoken }: AnswerSoFar,
  event: LoggedEvent
): AnswerSoFar => {
  const words = saidIn(event) ?? ""
  const isAnswer = event instanceof AssistantMessageEvent
  return {
    said: isAnswer && event.continues ? said + words : words || said,
    finishReason: isAnswer
      ? isCutReason(event.finishReason)
        ? event.finishReason
        : undefined
      : finishReason,
    calls: withCalls(calls, event),
    unspoken: withCalls(words.trim() === "" ? unspoken : [], event)
  }
}

/** The whole answer. */
export const chatAnswerOf = (
  conversationId: ConversationId,
  { calls, finishReason, said, unspoken }: AnswerSoFar,
  { ending, failure, questions, runId, status }: TurnRest
): ChatAnswer => {
  const toolCalls = calls.map(shownCall)
  return {
    conversationId,
    status,
    response: chatResponse({ ending, failure, said, finishReason, unspoken, question: questions[0] }),
    toolCalls,
    ...(finishReason === undefined ? {} : { finishReason }),
    runId,
    conversation_id: conversationId,
    tool_calls: toolCalls
  }
}
