/**
 * The notes of a context: a running summary that its agent's other contexts recall (S004-F04).
 *
 * Notes that could not be made leave those before as they were; what they did not
 * tell is told by the next. `notes-due` says when that is.
 */
import { Option } from "effect"
import type { ContextNotedEvent } from "./context-event.ts"

export interface Notes {
  readonly content: Option.Option<string>
  /** How many messages they tell, counted from the first of the context. */
  readonly told: number
  /** How many there were when they were last tried. */
  readonly tried: number
}

export const noNotes: Notes = { content: Option.none(), told: 0, tried: 0 }

/** Folds notes, or the record that there are none. */
export const withNotes = ({ content, told }: Notes, event: ContextNotedEvent): Notes =>
  event.content === null
    ? { content, told, tried: event.messages }
    : { content: Option.some(event.content), told: event.messages, tried: event.messages }
