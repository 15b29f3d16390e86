/**
 * How the answer to a message came to an end, or why it is waited for no longer (S003 §7).
 *
 * The log has the event; this is the word for it, from which follow the status
 * that a door tells and the sentence that a person reads.
 */
import { Schema } from "effect"
import type { ChatStatus } from "./conversation.ts"

export const ChatEnding = Schema.Literals([
  "answered",
  /** The agent asked a person and rests. */
  "question",
  /** A kill switch is on; the run goes on when it is off. */
  "stopped",
  /** Nobody waits longer; the turn goes on. */
  "bound",
  /** Something else was said meanwhile, and the next turn answers that, too. */
  "message",
  /** A person ended the turn. */
  "user",
  "cancelled",
  "forked",
  "stepLimit",
  "timeout",
  "budget",
  "failed"
])
export type ChatEnding = typeof ChatEnding.Type

/** What a door tells of each ending. */
export const chatStatuses: Readonly<Record<ChatEnding, ChatStatus>> = {
  answered: "completed",
  question: "waiting",
  stopped: "waiting",
  bound: "working",
  message: "interrupted",
  user: "interrupted",
  cancelled: "interrupted",
  forked: "interrupted",
  stepLimit: "interrupted",
  timeout: "interrupted",
  budget: "interrupted",
  failed: "failed"
}
