/**
 * What of a log belongs to the turn that answers a message, told as parts.
 *
 * Flow: http → **chat** → dispatch → run → tool → task
 *
 * Pure: events and pieces in, parts out. The words told before an answer's event
 * are that answer's words and nothing else, from the first on: behind a piece
 * that was not heard the rest is told when the answer is kept, or what there is
 * of one that was broken off. What a crash or a kill switch broke off begins anew.
 */
import { type ChatEnding, chatStatuses } from "@tropism/domain/chat-ending"
import { asksAnew } from "@tropism/domain/context"
import type { ChatStatus } from "@tropism/domain/conversation"
import { eventNumber, type LoggedEvent, type TurnFailure } from "@tropism/domain/context-event"
import type { RunId } from "@tropism/domain/ids"
import type { QuestionPayload } from "@tropism/domain/task"
import type { StandingRun } from "../run/reading.ts"

/** Something that an agent says or does after something was said. */
export type TurnPart =
  /** A piece of an answer, as it is made. */
  | { readonly type: "words"; readonly text: string }
  /** Kept in the log. */
  | { readonly type: "event"; readonly event: LoggedEvent }
  | TurnRest

/** The last part. */
export interface TurnRest {
  readonly type: "rest"
  readonly status: ChatStatus
  readonly ending: ChatEnding
  /** What brought the turn down, where the log says so. */
  readonly failure: TurnFailure | null
  readonly runId: RunId | null
  /** What the agent has asked and nobody has answered, the oldest first, where it rests for that. */
  readonly questions: ReadonlyArray<OpenQuestion>
}

export type OpenQuestion = Pick<QuestionPayload, "question" | "options">

/** Pieces of an answer that follow one another, and the event after which it was asked for. */
export interface Piece {
  readonly after: number
  /** The place of the first among the pieces of its answer, from 1. */
  readonly first: number
  readonly last: number
  /** When the first was said: with another time it is of another attempt at the answer. */
  readonly at: string
  readonly text: string
}

/** How a turn ended; `failure` is that of a rest. */
export interface TurnEnd {
  readonly ending: ChatEnding
  readonly failure?: TurnFailure | null
}

/** How far a log was heard. */
export interface Hearing {
  /** The number of the last event. */
  readonly number: number
  /** Whether the turn that answers has begun. */
  readonly isOurs: boolean
  /** Pieces that were asked for before this event are of an answer that is over. */
  readonly since: number
  /** What was told of the answer that is being made. */
  readonly words: string
  /** The last piece of it. */
  readonly pieces: number
  /** When the first piece of it was said. */
  readonly begunAt: string | undefined
  /** Its turns may be steps of a workflow, which follow one another. */
  readonly isFlow: boolean
  /** Somebody has asked for something more since the last step began. */
  readonly isAsked: boolean
  readonly runId: RunId | null
  readonly end: TurnEnd | undefined
}

/** Nothing of an answer. */
const untold = { words: "", pieces: 0, begunAt: undefined }

/** Of a log up to an event; `isTurnOpen` says that the turn which answers has begun before it. */
export const hearingFrom = (number: number, isTurnOpen: boolean): Hearing => ({
  number,
  isOurs: isTurnOpen,
  since: isTurnOpen ? 0 : number,
  ...untold,
  // What step the open turn is of lies before the event.
  isFlow: isTurnOpen,
  isAsked: false,
  runId: null,
  end: undefined
})

/** What was heard, and what of it is told. */
export interface Heard {
  readonly hearing: Hearing
  readonly parts: ReadonlyArray<TurnPart>
}

/** Hears the next event. */
export const hearEvent = (before: Hearing, event: LoggedEvent): Heard => {
  const number = eventNumber(event.id)
  const hearing = { ...before, number, isAsked: before.isAsked || asksAnew(event) }
  if (event.type === "FlowStepStartedEvent")
    return { hearing: { ...hearing, isFlow: true, isAsked: false, end: undefined }, parts: [] }
  if (event.type === "AgentTurnStartedEvent")
    return {
      hearing: { ...hearing, isOurs: true, since: number, ...untold, end: undefined },
      parts: [{ type: "event", event }]
    }
  // What is kept between two steps is of none of them.
  if (!before.isOurs || before.end !== undefined) return { hearing, parts: [] }
  const told: TurnPart = { type: "event", event }
  const end = endOf(event)
  // What nobody has broken into since was broken into by the message itself, and its own turn is still to come.
  if (end?.ending === "message" && !hearing.isAsked)
    return { hearing: { ...hearing, isOurs: false, since: number, ...untold }, parts: [told] }
  const said = saidIn(event)
  if (said === undefined) return { hearing: { ...hearing, end }, parts: [told] }
  const rest = restOfWords(before.words, said, event.type === "AssistantMessageEvent")
  const runId = "runId" in event && event.type === "AssistantMessageEvent" ? event.runId : before.runId
  return {
    hearing: { ...hearing, since: number, ...untold, runId, end },
    parts: [...(rest === "" ? [] : [{ type: "words", text: rest } as const]), told]
  }
}

/**
 * What is left to tell of what is kept of an answer.
 *
 * **Details** Of one that was broken off less may be kept than was told: words are kept now and then, and of a long text the beginning.
 */
const restOfWords = (told: string, said: string, isWhole: boolean): string => {
  if (said.startsWith(told)) return said.slice(told.length)
  // What was told first turned out to be thinking: all that is kept was told after it.
  if (said !== "" && told.endsWith(said)) return ""
  return isWhole ? said : ""
}

/** What an event keeps of an answer: the whole, or as much as there was of one that was broken off; undefined where it is about none. */
export const saidIn = (event: LoggedEvent): string | undefined => {
  if ("isUnknown" in event) return undefined
  switch (event.type) {
    case "AssistantMessageEvent":
      return event.content
    case "SoftStopEvent":
    case "AgentTurnInterruptedEvent":
      return event.partialText ?? ""
    default:
      return undefined
  }
}

/** Whether the turn is complete, and a further step of its workflow may follow. */
export const mayGoOn = ({ end, isFlow }: Hearing): boolean => isFlow && end?.ending === "answered"

/** Whether nothing behind belongs to the answer: behind a step the next does, unless somebody has asked for something more. */
export const isOver = (hearing: Hearing): boolean =>
  hearing.end !== undefined && (hearing.isAsked || !mayGoOn(hearing))

/** Hears a piece of an answer; the events before it were heard. */
export const hearPiece = (hearing: Hearing, { after, at, first, last, text }: Piece): Heard => {
  if (!hearing.isOurs || after < hearing.since) return { hearing, parts: [] }
  // Who was stopped and let go on asks anew behind the same event: the words begin anew with its first piece.
  const isAnew = first === 1 && at !== hearing.begunAt
  if (!isAnew && first !== hearing.pieces + 1) return { hearing, parts: [] }
  const told = isAnew ? { words: text, begunAt: at } : { words: hearing.words + text }
  return { hearing: { ...hearing, ...told, pieces: last }, parts: [{ type: "words", text }] }
}

/** How the turn ended, where this event ends it; a crash does not. */
const endOf = (event: LoggedEvent): Hearing["end"] => {
  switch (event.type) {
    case "AgentTurnCompletedEvent":
      return { ending: "answered" }
    case "AgentTurnFailedEvent":
      return "error" in event ? { ending: "failed", failure: event.reason ?? null } : { ending: "failed" }
    case "AgentTurnInterruptedEvent":
      return "reason" in event && event.reason !== "crash" ? { ending: event.reason } : undefined
    default:
      return undefined
  }
}

/** How the answer ended where its run tells and the log does not; undefined while the run goes on. */
export const endOfRun = ({ isHeldBack, pauseReason, status }: StandingRun): Hearing["end"] => {
  switch (status) {
    case "completed":
      return { ending: "answered" }
    case "failed":
    case "skipped":
      return { ending: "failed" }
    case "cancelled":
      return { ending: "cancelled" }
    case "paused":
      // Sub-agents and clients bring their results within a time, and the turn goes on by itself.
      return pauseReason === null || pauseReason === "subAgents" || pauseReason === "toolResult"
        ? undefined
        : { ending: pauseReason === "killSwitch" ? "stopped" : pauseReason }
    case "queued":
      return isHeldBack ? { ending: "stopped" } : undefined
    case "running":
      return undefined
  }
}

export const restOf = (
  { ending, failure = null }: TurnEnd,
  runId: RunId | null,
  questions: TurnRest["questions"] = []
): TurnRest => ({
  type: "rest",
  status: chatStatuses[ending],
  ending,
  failure,
  runId,
  questions
})
