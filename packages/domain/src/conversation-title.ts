/**
 * What a conversation is called before anybody gives it a name: the beginning of what was said first.
 */
import { conversationBounds } from "./conversation.ts"
import { beginningOf } from "./text-beginning.ts"

/** A title on one line, cut between two words where there are any; `message` is not blank. */
export const titleOf = (message: string): string => {
  // No more is looked at than can be shown, however long a message is.
  const start = beginningOf(message.trimStart(), conversationBounds.ownTitleMaxChars * 4)
  const line = start.replace(/\s+/gu, " ").trimEnd()
  const points = [...line]
  if (points.length <= conversationBounds.ownTitleMaxChars) return line
  const cut = beginningOf(line, points.slice(0, conversationBounds.ownTitleMaxChars - 1).join("").length)
  const space = cut.lastIndexOf(" ")
  return `${space > conversationBounds.ownTitleMaxChars / 2 ? cut.slice(0, space) : cut}…`
}
