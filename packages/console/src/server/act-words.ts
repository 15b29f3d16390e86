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
  sentence: "It was done after you had left."
})

/** **Details** What is begun anew later is another request, so it may be done twice. */
export const failedMessage = (what: string, error: unknown): Message =>
  isLeftOpen(error)
    ? {
        tone: "refused",
        isUnknown: true,
        title: `${what}: not known`,
        sentence: "The server gave no answer. Look whether it was done before you do it again."
      }
    : { tone: "refused", title: `${what}: not done`, sentence: failureSentence(error) }
