/**
 * What is shown of a conversation: words as they come for a person, events as they stand for a program.
 */
import type { ContextFeedEvent } from "@tropism/client/feed"
import { readEvent } from "@tropism/domain/conversation-reading"
import { type PiecePlace, pieceOf } from "@tropism/domain/piece"
import { Effect } from "effect"
import type { FedEvent } from "../context-feed.ts"
import { contextEventText } from "../event-text.ts"
import type { Screen } from "../terminal/screen.ts"
import { cutEnd, printable, printableLines } from "../terminal/text.ts"
import { toldOfBreaking, unread } from "./progress.ts"

type Tell = (fed: FedEvent) => Effect.Effect<void>

/** Every event as it is kept, one JSON object in a line; pieces of an answer only where they are wanted. */
export const tellJson =
  (screen: Screen["Service"], hasDeltas: boolean): Tell =>
  ({ json, number }) =>
    number === undefined && !hasDeltas ? Effect.void : screen.print(JSON.stringify(json))

/** Nothing but the agent's finished words. */
export const tellAnswers =
  (screen: Screen["Service"]): Tell =>
  ({ event }) =>
    event.type === "AssistantMessageEvent" && "content" in event && event.content !== ""
      ? screen.print(printableLines(event.content))
      : Effect.void

/** The agent's words as they come, and one line for everything else that happens. */
export const tellLive = (screen: Screen["Service"]): Tell => {
  /** What of the present answer stands on the screen. */
  let shown = ""
  /** The piece that was shown last. */
  let last: PiecePlace = { after: 0, place: 0 }
  let reading = unread
  const { paint } = screen
  const line = (text: string) => {
    const start = shown === "" ? "" : "\n"
    shown = ""
    return screen.write(`${start}${cutEnd(text, 400)}\n`)
  }
  const said = (content: string) => {
    const rest = content.startsWith(shown) ? content.slice(shown.length) : `\n${content}`
    shown = ""
    return content === "" ? Effect.void : screen.write(`${printableLines(rest)}\n`)
  }
  return ({ event }) => {
    if ("delta" in event) {
      const piece = pieceOf(event)
      const isNext = piece.after === last.after && piece.place === last.place + 1
      last = piece
      // An answer that is begun anew has a line of its own; dots stand for what was not heard.
      const start = piece.place > 1 ? (isNext ? "" : "… ") : shown === "" ? "" : "\n"
      shown = `${piece.place === 1 ? "" : shown}${start.trim()}${event.delta}`
      return screen.write(`${start}${printableLines(event.delta)}`)
    }
    const read = readEvent(reading, event)
    reading = read.reading
    if (event.type === "AgentTurnFailedEvent")
      return line(paint.bad(printable(read.told?.message.content ?? toldOfBreaking)))
    if (event.type === "AssistantMessageEvent" && "content" in event) return said(event.content)
    const text = lineOf(event)
    return text === undefined ? Effect.void : line(paint.dim(text))
  }
}

const lineOf = (event: ContextFeedEvent): string | undefined => {
  switch (event.type) {
    case "ToolCallStartedEvent":
      return `→ ${contextEventText(event)}`
    case "ToolCallFailedEvent":
      return `✗ ${contextEventText(event)}`
    case "AgentTurnInterruptedEvent":
      return "reason" in event && event.reason === "user"
        ? "interrupted"
        : `interrupted: ${contextEventText(event)}`
    case "SoftStopEvent":
    case "LoopWarningEvent":
    case "ContinuationRequestedEvent":
      return `! ${contextEventText(event)}`
    default:
      return undefined
  }
}
