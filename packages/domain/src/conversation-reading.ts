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
  type LoggedEvent,
  eventNumber,
  type SoftStopEvent,
  UnknownEvent
} from "./context-event.ts"
import type { ConversationMessage } from "./conversation.ts"

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
}

/** Reading that begins behind an event. */
export const readingAfter = (after: number): Reading => ({ after, past: 0, carried: [], last: undefined })

/** Reads one event; there is a message where it completes one. */
export const readEvent = (
  before: Reading,
  event: LoggedEvent
): { readonly reading: Reading; readonly told: PlacedMessage | undefined } => {
  const { message, ...rest } = stepOf(before, event)
  const past = before.past + (message ? 1 : 0)
  const reading: Reading =
    rest.carried.length === 0 ? readingAfter(eventNumber(event.id)) : { ...before, ...rest, past }
  return { reading, told: message && { message, after: reading.after, past: reading.past } }
}

/** What an agent has done so far that it has said nothing of. */
export const unsaid = ({ after, carried, last, past }: Reading): PlacedMessage | undefined =>
  last === undefined || carried.length === 0
    ? undefined
    : { message: answer(last, "", carried), after, past: past + 1 }

interface Step extends Pick<Reading, "carried" | "last"> {
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
      return event.content.trim() === ""
        ? { carried: withCalls(reading.carried, event), last: event }
        : {
            message: answer(event, event.content, reading.carried),
            carried: withCalls([], event),
            last: event
          }
    case "ToolCallStartedEvent":
    case "ToolCallCompletedEvent":
    case "ToolCallFailedEvent":
      return { ...reading, carried: withCalls(reading.carried, event) }
    case "SoftStopEvent":
      return brokenOff(reading, event) ?? reading
    case "AgentTurnInterruptedEvent":
      // A crash is nobody's wish: the next turn goes on where the log ends, and says it again.
      return event.reason === "crash" ? reading : (brokenOff(reading, event) ?? ended(reading))
    case "AgentTurnCompletedEvent":
      return ended(reading, silentResponse(reading.carried))
    case "AgentTurnFailedEvent": {
      const content = failedResponse(lastFault(reading.carried), event.reason ?? null)
      return { message: answer(event, content, reading.carried), carried: [], last: undefined }
    }
    default:
      return reading
  }
}

/** What was said of an answer that was broken off, with the calls that were made for it. */
const brokenOff = (
  { carried }: Reading,
  event: AgentTurnInterruptedEvent | SoftStopEvent
): Step | undefined =>
  event.partialText
    ? { message: answer(event, event.partialText, carried), carried: [], last: undefined }
    : undefined

const ended = (reading: Reading, content = ""): Step => {
  const told = unsaid(reading)
  return { message: told && { ...told.message, content }, carried: [], last: undefined }
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
