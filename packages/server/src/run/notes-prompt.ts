/**
 * What a model is shown to renew the notes of a context.
 *
 * Flow: graph → outbox → dispatch → **run** → tool → task
 *
 * A function of the context alone, so the record of the request is the number of
 * an event.
 */
import type { ReducedContext } from "@tropism/domain/context"
import type { Message } from "@tropism/domain/message"
import { Option } from "effect"
import { recallLimits } from "../agent/recall-limits.ts"
import { summingUp } from "./summary-prompt.ts"

/** The request for notes that take the place of those before. */
export const notesRequest = ({
  droppedMessages,
  messages,
  notes,
  summary
}: ReducedContext): ReadonlyArray<Message> =>
  summingUp({
    instructions,
    before: Option.orElse(notes.content, () => summary),
    said: messages.slice(Math.max(0, notes.told - droppedMessages)),
    maxSaidChars: recallLimits.notedMaxChars,
    maxChars: recallLimits.notesMaxChars
  })

const instructions =
  "You keep the notes of an assistant on one of its conversations. They are read later, in other conversations, by somebody who knows nothing of this one. Write notes that take the place of the summary so far, if there is one, and tell of the conversation too: what it is about and with whom, what was asked, decided, found out and done, with names, ids and figures, and what is still open. Write nothing else."
