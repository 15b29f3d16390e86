/**
 * What the log says of a call: that it was made, and what it came to.
 *
 * Flow: graph → outbox → dispatch → run → **tool** → task
 *
 * The log names what the model called, so that the model reads its own words
 * again; where that is a name which the context defines, the event says beside
 * it which tool was called. The records of calls name the tool itself.
 */
import type { Picture } from "@tropism/domain/attachment"
import type { NewEvent } from "@tropism/domain/context-event"
import type { MadeCall } from "@tropism/domain/defined-tool"
import type { WaitsFor } from "@tropism/domain/event-base"
import type { Schema } from "effect"
import type { CallStatus } from "./tool-calls.ts"

export const startedEvent = (
  { arguments: args, calledAs, coerced, id: callId, name }: MadeCall,
  waitsFor?: WaitsFor
): NewEvent => ({
  type: "ToolCallStartedEvent",
  callId,
  ...(calledAs === undefined
    ? { tool: name, arguments: args }
    : { tool: calledAs.name, arguments: calledAs.arguments, standsFor: { tool: name, arguments: args } }),
  ...(coerced === undefined ? {} : { coerced }),
  ...(waitsFor === undefined ? {} : { waitsFor })
})

export const endedEvent = (
  { calledAs, id: callId, name }: MadeCall,
  status: CallStatus,
  result: Schema.Json,
  pictures: ReadonlyArray<Picture> = []
): NewEvent => {
  const tool = calledAs?.name ?? name
  return status === "completed"
    ? { type: "ToolCallCompletedEvent", callId, tool, result, ...(pictures.length === 0 ? {} : { pictures }) }
    : { type: "ToolCallFailedEvent", callId, tool, error: result }
}
