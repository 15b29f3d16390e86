/**
 * Answers that are not whole, and what follows: the model goes on, is asked again, or the run fails.
 *
 * An answer that says no `finishReason` is whole, as every answer of an earlier log is. Each kind of further request is bounded,
 * counted over all answers since the last whole one.
 */
import { Option } from "effect"
import type { AssistantMessageEvent } from "./context-event.ts"

export const unfinishedBounds = {
  /** How often a model is asked to go on with an answer that reached its limit of output tokens. */
  continuations: 3,
  /** How often a turn that its provider paused is taken up again. */
  pauses: 5,
  /** How often an empty answer is asked again. */
  retries: 1
} as const

export interface Unfinished {
  /** `length`: cut at the limit of output tokens. `pause`: paused by its provider. `empty`: no words and no calls. */
  readonly reason: "length" | "pause" | "empty" | "contentFilter"
  readonly lengths: number
  readonly pauses: number
  readonly empties: number
  /** The model was told to go on. */
  readonly isPrompted: boolean
}

type Answer = Pick<AssistantMessageEvent, "content" | "toolCalls" | "finishReason" | "continues">

/** Why an answer is not whole; undefined where it is. */
const reasonOf = ({
  content,
  continues = false,
  finishReason,
  toolCalls
}: Answer): Unfinished["reason"] | undefined => {
  if (finishReason === undefined) return undefined
  if (finishReason === "content-filter") return "contentFilter"
  if (toolCalls.length > 0) return undefined
  if (!continues && content.trim() === "") return "empty"
  return finishReason === "length" || finishReason === "pause" ? finishReason : undefined
}

/** What is unfinished after an answer. */
export const afterAnswer = (before: Option.Option<Unfinished>, answer: Answer): Option.Option<Unfinished> => {
  const reason = reasonOf(answer)
  if (reason === undefined) return Option.none()
  const counted = Option.getOrElse(before, () => ({ lengths: 0, pauses: 0, empties: 0 }))
  return Option.some({
    reason,
    lengths: counted.lengths + (reason === "length" ? 1 : 0),
    pauses: counted.pauses + (reason === "pause" ? 1 : 0),
    empties: counted.empties + (reason === "empty" ? 1 : 0),
    isPrompted: false
  })
}

/** Whether the next answer goes on with the words of the last one. */
export const isContinued = (unfinished: Option.Option<Unfinished>): boolean =>
  Option.exists(unfinished, ({ reason }) => reason === "length" || reason === "pause")

/** The finish reason that the log keeps: none of an answer that is whole. A script that says nothing means it. */
export const keptFinishReason = (
  finishReason: string,
  { content, continues = false, isScripted, toolCalls }: Answer & { readonly isScripted: boolean }
): string | undefined => {
  const isCut = finishReason === "length" || finishReason === "pause" || finishReason === "content-filter"
  const isEmpty = !continues && !isScripted && toolCalls.length === 0 && content.trim() === ""
  return isCut || isEmpty ? finishReason : undefined
}

/** What follows an answer that is not whole: `ask` is one more request, `goOn` tells the model to go on before it. */
export type Sequel = "ask" | "goOn" | "complete" | "emptyAnswer" | "contentFilter"

/** A limit of output tokens that somebody set is kept: the answer ends there. */
export const sequelOf = (
  { empties, isPrompted, lengths, pauses, reason }: Unfinished,
  isOutputLimited: boolean
): Sequel => {
  switch (reason) {
    case "contentFilter":
      return "contentFilter"
    case "empty":
      return empties > unfinishedBounds.retries ? "emptyAnswer" : "ask"
    case "pause":
      return pauses > unfinishedBounds.pauses ? "complete" : "ask"
    case "length":
      if (isOutputLimited || lengths > unfinishedBounds.continuations) return "complete"
      return isPrompted ? "ask" : "goOn"
  }
}
