/**
 * What became of something whose page was left before there was an answer, as messages.
 *
 * Pure. `what` is what was done, as a title: `Make a token`.
 */
import type { Message } from "../parts/toasts.tsx"
import { failureSentence, isLeftOpen } from "./problem.ts"

export const doneMessage = (what: string): Message => ({
  tone: "done",
  title: `${what}: done`,
  sentence: "Completed after you left the page."
})

/** **Details** What is begun anew later is another request, so it may be done twice. */
export const failedMessage = (what: string, error: unknown): Message =>
  isLeftOpen(error)
    ? {
        tone: "refused",
        isUnknown: true,
        title: `${what}: outcome unknown`,
        sentence: "No response from the server. Check whether it went through before retrying."
      }
    : { tone: "refused", title: `${what}: failed`, sentence: failureSentence(error) }
