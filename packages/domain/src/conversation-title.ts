/**
 * What a conversation is called before anybody gives it a name: the beginning of what was said first.
 */
import { conversationBounds } from "./conversation.ts"

/** A title on one line, cut between two words where there are any; `message` is not blank. */
export const titleOf = (message: string): string => {
  // No more is looked at than can be shown, however long a message is.
  const start = message
    .trimStart()
    .slice(0, conversationBounds.ownTitleMaxChars * 4)
    .replace(/\p{Surrogate}$/u, "")
  const line = [...start.replace(/\s+/gu, " ").trimEnd()]
  if (line.length <= conversationBounds.ownTitleMaxChars) return line.join("")
  const cut = line.slice(0, conversationBounds.ownTitleMaxChars - 1).join("")
  const space = cut.lastIndexOf(" ")
  return `${space > conversationBounds.ownTitleMaxChars / 2 ? cut.slice(0, space) : cut}…`
}
