/**
 * An event of a log in a line: what it is about, and when in its run it was.
 *
 * Pure. The words are foreign; whoever shows them shows them through `Visible`.
 */
import { cutText } from "../words/cut-text.ts"
import { durationText } from "../words/durations.ts"

/** An event as it travels: what every event has; the rest is shown as it is. */
export interface SentEvent {
  readonly id: string
  readonly type: string
  readonly timestamp: string
  /** The call that it is about. */
  readonly callId?: string
  readonly [field: string]: unknown
}

/** What says most of an event: a tool before what came of it, then words, then why. */
const telling = ["tool", "step", "content", "error", "reason", "by"] as const

const maxCharacters = 160

/** `create_object`, `Found nothing.`; nothing where an event says no more than its type. */
export const eventWords = (event: SentEvent): string =>
  cutText(
    telling
      .map((field) => event[field])
      .filter((value) => typeof value === "string" && value !== "")
      .join(": "),
    1,
    maxCharacters
  )

/** How long after the beginning of the log. */
export const elapsedText = (first: SentEvent, event: SentEvent): string =>
  `+${durationText(Date.parse(event.timestamp) - Date.parse(first.timestamp))}`

/** Whether an event says these words anywhere, in whatever case. */
export const saysWords = (event: SentEvent, words: string | undefined): boolean =>
  words === undefined || JSON.stringify(event).toLowerCase().includes(words.trim().toLowerCase())
