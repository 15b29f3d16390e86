/**
 * The tool calls of an agent as whoever chats is shown them, carried from event to event.
 *
 * A call is asked for by an answer, begins, and has an outcome; each of these is an event
 * of its own, and the call here is what they say of it so far.
 */
import type { Schema } from "effect"
import { type LoggedEvent, UnknownEvent } from "./context-event.ts"
import type { ChatToolCall } from "./conversation.ts"

/** A call on its way, under the model's id of it. */
export interface CarriedCall extends ChatToolCall {
  readonly callId: string
  readonly status: "asked" | "started" | "completed" | "failed"
}

/** The calls, with what an event says of them: further ones, or what is new of one. */
export const withCalls = (
  calls: ReadonlyArray<CarriedCall>,
  event: LoggedEvent
): ReadonlyArray<CarriedCall> => {
  if (event instanceof UnknownEvent) return calls
  switch (event.type) {
    case "AssistantMessageEvent":
      return [
        ...calls,
        ...event.toolCalls.map((call): CarriedCall => ({
          callId: call.id,
          status: "asked",
          tool: call.name,
          arguments: call.arguments,
          result: null,
          timestamp: event.timestamp
        }))
      ]
    case "ToolCallStartedEvent":
      return withNews(calls, event.callId, { status: "started", timestamp: event.timestamp })
    case "ToolCallCompletedEvent":
      return withNews(calls, event.callId, { status: "completed", result: event.result })
    case "ToolCallFailedEvent":
      return withNews(calls, event.callId, { status: "failed", result: errorOf(event.error) })
    default:
      return calls
  }
}

/** The call that an event tells of. */
export const callOf = (calls: ReadonlyArray<CarriedCall>, event: LoggedEvent): CarriedCall | undefined =>
  "callId" in event ? calls.findLast(({ callId }) => callId === event.callId) : undefined

/** What the last call that has an outcome answered, where that was an error. */
export const lastFault = (calls: ReadonlyArray<CarriedCall>): Schema.Json | undefined => {
  const last = calls.findLast(({ status }) => status === "completed" || status === "failed")
  return last?.status === "failed" ? last.result : undefined
}

/** A call as it is shown. */
export const shownCall = ({ callId: _callId, status: _status, ...call }: CarriedCall): ChatToolCall => call

/** Ids may come again in later answers, so the newest is meant. */
const withNews = (calls: ReadonlyArray<CarriedCall>, callId: string, news: Partial<CarriedCall>) => {
  const index = calls.findLastIndex((call) => call.callId === callId)
  return calls.map((call, place) => (place === index ? { ...call, ...news } : call))
}

const errorOf = (error: Schema.Json): Schema.Json =>
  typeof error === "object" && error !== null && !Array.isArray(error) && "error" in error ? error : { error }
