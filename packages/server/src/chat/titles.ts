/**
 * What a conversation is called before anybody gives it a name: the beginning of what was said first.
 *
 * Flow: http → **chat** → dispatch → run → tool → task
 */
import { chatLimits } from "./chat-limits.ts"

/** A title on one line, cut between two words where there are any; `message` is not blank. */
export const titleOf = (message: string): string => {
  // No more is looked at than can be shown, however long a message is.
  const start = message
    .trimStart()
    .slice(0, chatLimits.titleMaxChars * 4)
    .replace(/\p{Surrogate}$/u, "")
  const line = [...start.replace(/\s+/gu, " ").trimEnd()]
  if (line.length <= chatLimits.titleMaxChars) return line.join("")
  const cut = line.slice(0, chatLimits.titleMaxChars - 1).join("")
  const space = cut.lastIndexOf(" ")
  return `${space > chatLimits.titleMaxChars / 2 ? cut.slice(0, space) : cut}…`
}
