/** The texts of the engine for models, and for people about a run. */
import type { SoftStopReason } from "@tropism/domain/context-event"
import type { RefusalReason } from "@tropism/domain/decide"
import type { ToolCall } from "@tropism/domain/message"
import type { LoopWarning } from "@tropism/domain/repetition"
import { beginningTold } from "@tropism/domain/text-beginning"
import { SqlError } from "effect/sql"
import { keepableText } from "../graph/import/import-records.ts"
import { runLimits } from "../limits.ts"

export const softStopSentences: Readonly<Record<SoftStopReason, string>> = {
  stepLimit:
    "You have used all the steps of this run. Call no tool any more: say in a few sentences what you have done and what is left.",
  timeout:
    "Time's up. Call no tool any more: summarize in a few sentences what you have done and what is left."
}

export const refusalSentences: Readonly<Record<RefusalReason, string>> = {
  softStop: "The run was asked to stop: no tool is called any more",
  abandoned: "The turn that asked for this call has ended: it was not made",
  doomLoop:
    "You have called this tool with the same arguments several times in a row, so it was not called again. The answer would be the same: try a different approach, or say why you cannot go on."
}

/** The outcome of a call that had begun when its run stopped. */
export const underWay = {
  error: "This call had begun when the run came to rest: it may or may not have happened",
  reason: "unknownOutcome"
} as const

/** Why a tool call was aborted, to follow "had not answered when". */
export const abortReasons = {
  time: "the run's time was up",
  message: "a new message came",
  user: "a person ended the turn"
} as const

export const warningSentences: Readonly<Record<LoopWarning, string>> = {
  cycle:
    "You are repeating the same few tool calls in a circle. They will answer the same again: try a different approach, or say why you cannot go on.",
  errorStreak:
    "Your last tool calls all failed with the same error. Read it, and try a different approach, or say why you cannot go on."
}

/** What a model reads after its answer reached the provider's limit of output tokens. */
export const continuationSentence =
  "Your last answer was cut off at the limit of output tokens. Go on exactly where it stopped: repeat nothing, and do not mention the cut."

/** Why a run failed whose model gave no usable answer. */
export const answerFailures = {
  contentFilter: "The content filter of the model's provider stopped the answer",
  emptyAnswer: "The model gave no answer, twice in a row: neither words nor tool calls"
} as const

/** What a model reads when a run is resumed after a limit without a message. */
export const resumeSentence =
  "You may go on: what stopped you no longer does, and you can call tools again. Continue where you stopped."

/**
 * Describes what broke an attempt, for people: PostgreSQL's message, otherwise only the kind of defect, because its message may hold
 * secrets.
 */
export const causeSentence = (defect: unknown): string => {
  if (!(defect instanceof SqlError.SqlError))
    return `${defect instanceof Error ? defect.name : "a defect"}; the server's log says more`
  const { cause } = defect.reason
  const said = cause instanceof Error ? cause.message : defect.message
  return keepableText(said, runLimits.breakCauseMaxChars)
}

/** Why a run was cancelled when everything that triggered it was purged. */
export const emptiedSentence = "What woke it was purged before it had begun"

/** The failure of a run that no worker took over, and of its entry. */
export const noWorkerSentence = "No worker was alive for this entry for too long"

/** The failure of a running run without progress, and of its entry. */
export const noProgressSentence = (ms: number): string =>
  `No progress for ${Math.round(ms / 1_000)} s: the model sent nothing, no tool was at work and no event was kept`

/** Why a run failed that no further attempt could complete. */
export const permanentSentence = (fault: SqlError.SqlError): string =>
  `The database refuses what this run writes, and would refuse it again: ${causeSentence(fault)}`

/** Shortens a text for a run's summary; only a shortened text exceeds the limit, by the note that says so. */
export const summaryOf = (text: string, wholeChars = 0): string =>
  beginningTold(text, runLimits.summaryMaxChars, Math.max(wholeChars, text.length))

/** Returns a summary with whether it was shortened; a list may have read only its beginning. */
export const toldSummary = (
  { summary, summaryChars }: { readonly summary: string | null; readonly summaryChars: number | null },
  listedMaxChars?: number
): { readonly summary: string | null; readonly isSummaryTruncated: boolean } => {
  if (summary === null || listedMaxChars === undefined || summary.length <= listedMaxChars)
    return { summary, isSummaryTruncated: (summary ?? "").length > runLimits.summaryMaxChars }
  return {
    summary: beginningTold(summary, listedMaxChars, Math.max(summaryChars ?? 0, summary.length)),
    isSummaryTruncated: true
  }
}

/** Why a run was stopped that kept repeating itself (S002-R37). */
export const doomLoopSentence = ({ name }: ToolCall, times: number): string =>
  `Doom loop: the agent asked for ${name} with the same arguments ${times} times in a row and was stopped`
