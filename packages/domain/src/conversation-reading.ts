/**
 * The messages of a conversation, read out of its log (S003-R34, R60).
 *
 * What an agent did stands with the words that it said of it: calls are carried
 * from the answers that made them to the next one that says something, or to
 * the end of the turn. Nothing here is kept: the log is the truth, and reading
 * may begin at any place where no call is carried. A turn that failed, and one that ends
 * without a word of what was done last, has the sentence that a person is told of it.
 */
import { type CarriedCall, lastFault, shownCall, withCalls } from "./chat-calls.ts"
import { failedResponse, silentResponse } from "./chat-sentences.ts"
import {
  type AgentTurnInterruptedEvent,
  type AssistantMessageEvent,
  type LoggedEvent,
  eventNumber,
  type SoftStopEvent,
  UnknownEvent
} from "./context-event.ts"
import { type ConversationMessage, isCutReason } from "./conversation.ts"

/** A message, and where reading goes on behind it: after an event, past so many messages. */
export interface PlacedMessage {
  readonly message: ConversationMessage
  readonly after: number
  readonly past: number
}

/** What has been read since the last place at which no call was carried. */
export interface Reading {
  readonly after: number
  readonly past: number
  readonly carried: ReadonlyArray<CarriedCall>
  /** The answer that made the newest of the calls. */
  readonly last: LoggedEvent | undefined
  /** An answer that may go on: what of it there is. */
  readonly begun: ConversationMessage | undefined
}

/** Reading that begins behind an event. */
export const readingAfter = (after: number): Reading => ({
  after,
  past: 0,
  carried: [],
  last: undefined,
  begun: undefined
})

/** Reads one event; there is a message where it completes one. */
export const readEvent = (
  before: Reading,
  event: LoggedEvent
): { readonly reading: Reading; readonly told: PlacedMessage | undefined } => {
  const { message, ...rest } = stepOf(before, event)
  const past = before.past + (message ? 1 : 0)
  const reading: Reading =
    rest.carried.length === 0 && rest.begun === undefined
      ? readingAfter(eventNumber(event.id))
      : { ...before, ...rest, past }
  return { reading, told: message && { message, after: reading.after, past: reading.past } }
}

/** What an agent has done so far that it has said nothing of, and what it has said of an answer that goes on. */
export const unsaid = ({ after, begun, carried, last, past }: Reading): PlacedMessage | undefined =>
  begun !== undefined
    ? { message: begun, after, past: past + 1 }
    : last === undefined || carried.length === 0
      ? undefined
      : { message: answer(last, "", carried), after, past: past + 1 }

interface Step extends Pick<Reading, "carried" | "last" | "begun"> {
  readonly message?: ConversationMessage | undefined
}

const stepOf = (reading: Reading, event: LoggedEvent): Step => {
  if (event instanceof UnknownEvent) return reading
  switch (event.type) {
    case "UserMessageEvent":
      return { ...reading, message: said(event, event.content) }
    case "FileAttachmentEvent":
      return { ...reading, message: said(event, `[${event.fileName ?? "file"}, ${event.mimeType}]`) }
    case "AssistantMessageEvent":
      return answered(reading, event)
    case "ToolCallStartedEvent":
    case "ToolCallCompletedEvent":
    case "ToolCallFailedEvent":
      return { ...reading, carried: withCalls(reading.carried, event) }
    case "SoftStopEvent":
      return brokenOff(reading, event) ?? (reading.begun ? ended(reading) : reading)
    case "AgentTurnInterruptedEvent":
      // A crash is nobody's wish: the next turn goes on where the log ends, and says it again.
      return event.reason === "crash" ? reading : (brokenOff(reading, event) ?? ended(reading))
    case "AgentTurnCompletedEvent":
      return ended(reading, silentResponse(reading.carried))
    case "AgentTurnFailedEvent": {
      const { begun, carried } = reading
      const content = failedResponse(lastFault(carried), event.reason ?? null)
      // What there was of an answer that went on stands with the reason that there is no more.
      const message = begun
        ? { ...begun, content: `${begun.content}\n\n${content}` }
        : answer(event, content, carried)
      return { message, ...nothing }
    }
    default:
      return reading
  }
}

const nothing = { carried: [], last: undefined, begun: undefined } as const

/** An answer is told when it is whole: one that its provider cut or paused may go on in the next. */
const answered = (reading: Reading, event: AssistantMessageEvent): Step => {
  const before = reading.begun
  const content = `${before?.content ?? ""}${before && !event.continues ? "\n\n" : ""}${event.content}`
  const calls = withCalls([], event)
  if (content.trim() === "")
    return { carried: withCalls(reading.carried, event), last: event, begun: undefined }
  const whole = {
    ...answer(event, content, reading.carried),
    ...(before === undefined ? {} : { toolCalls: before.toolCalls }),
    ...(isCutReason(event.finishReason) ? { finishReason: event.finishReason } : {})
  }
  const mayGoOn = calls.length === 0 && (event.finishReason === "length" || event.finishReason === "pause")
  return mayGoOn
    ? { carried: [], last: undefined, begun: whole }
    : { message: whole, carried: calls, last: event, begun: undefined }
}

/** What was said of an answer that was broken off, with the calls that were made for it. */
const brokenOff = (
  { begun, carried }: Reading,
  event: AgentTurnInterruptedEvent | SoftStopEvent
): Step | undefined => {
  if (!event.partialText) return undefined
  const message = begun
    ? { ...begun, content: begun.content + event.partialText }
    : answer(event, event.partialText, carried)
  return { message, ...nothing }
}

const ended = (reading: Reading, content = ""): Step => {
  const told = unsaid(reading)
  if (reading.begun) return { message: reading.begun, ...nothing }
  return { message: told && { ...told.message, content }, ...nothing }
}

const said = (event: LoggedEvent, content: string): ConversationMessage => ({
  id: event.id,
  role: "user",
  content,
  toolCalls: [],
  createdAt: event.timestamp
})

const answer = (
  event: LoggedEvent,
  content: string,
  calls: ReadonlyArray<CarriedCall>
): ConversationMessage => ({
  id: event.id,
  role: "assistant",
  content,
  toolCalls: calls.map(shownCall),
  createdAt: event.timestamp
})
