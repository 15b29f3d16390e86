/**
 * A guard: a second model that judges what the first is about to read.
 *
 * It is shown only what is new and was not said by the agent itself, here and not
 * as somebody else tells it, with what a client says that the agent shall be, and
 * answers in one word. Whatever cannot be read as that word counts as a warning: a
 * guard that was talked out of its task has not said that all is well (S004-F06).
 */
import { Option } from "effect"
import type { GuardVerdictEvent } from "./context-event.ts"
import { isQuoted, type Message } from "./message.ts"
import type { ReducedContext } from "./reduced-context.ts"
import { newRun } from "./run-progress.ts"
import { addUsage } from "./run.ts"
import { beginningOf } from "./text-beginning.ts"

/** What the model is about to read and no guard has judged; the agent's own words are not judged. */
export const findUnjudged = ({
  droppedMessages,
  judgedMessages,
  messages
}: Pick<ReducedContext, "droppedMessages" | "judgedMessages" | "messages">): ReadonlyArray<Message> =>
  messages.slice(Math.max(0, judgedMessages - droppedMessages)).filter((message) => !isOwn(message))

const isOwn = (message: Message): boolean => message.role === "assistant" && !isQuoted(message)

/** Whether the model is about to read anything that no guard has judged. */
export const isAnythingUnjudged = (
  context: Pick<ReducedContext, "droppedMessages" | "judgedMessages" | "messages" | "unjudgedInstructions">
): boolean => Option.isSome(context.unjudgedInstructions) || findUnjudged(context).length > 0

/** How many messages of a context have been judged when all that it shows now has been. */
export const countShown = ({
  droppedMessages,
  messages
}: Pick<ReducedContext, "droppedMessages" | "messages">): number => droppedMessages + messages.length

export interface Verdict {
  readonly isFlagged: boolean
  /** Empty where nothing is wrong. */
  readonly reason: string
}

const reasonMaxChars = 500

/** Reads what a guard has said: its first line is SAFE, or FLAGGED with a reason. */
export const readVerdict = (text: string): Verdict => {
  const [line = ""] = text.trim().split("\n", 1)
  if (/^\W*safe\W*$/i.test(line)) return { isFlagged: false, reason: "" }
  const flagged = /^\W*flagged\b[\s:*.–—-]*(.*)$/is.exec(line)
  if (!flagged) return { isFlagged: true, reason: "its verdict cannot be read" }
  const reason = beginningOf((flagged[1] ?? "").trim(), reasonMaxChars).toWellFormed()
  return { isFlagged: true, reason: reason === "" ? "it gave no reason" : reason }
}

type Judged = Pick<ReducedContext, "judgedMessages" | "lastText" | "run" | "unjudgedInstructions">

/** Folds a verdict: what was found safe is not judged again, and what it cost is the run's. */
export const withVerdict = <S extends Judged>(
  state: S,
  { isFlagged, messages, runId, usage }: GuardVerdictEvent
): S => {
  const isSameRun = state.run.id === runId
  const run = isSameRun ? state.run : newRun(runId)
  return {
    ...state,
    judgedMessages: isFlagged ? state.judgedMessages : Math.max(state.judgedMessages, messages),
    unjudgedInstructions: isFlagged ? state.unjudgedInstructions : Option.none(),
    lastText: isSameRun ? state.lastText : "",
    run: { ...run, usage: addUsage(run.usage, usage) }
  }
}
