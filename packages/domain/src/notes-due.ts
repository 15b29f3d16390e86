/**
 * When the notes of a context are renewed: between turns, when enough was said since.
 *
 * It follows from the log alone, so whoever takes a run over knows it too. Notes
 * that could not be made are due when as much has been said again.
 */
import { Option } from "effect"
import { countShown, findUnjudged } from "./guard.ts"
import type { ReducedContext } from "./reduced-context.ts"

export const notesBounds = {
  /** Messages that must have come for notes to be worth a request. */
  everyMessages: 8
} as const

/** Whether a context has been answered, keeps notes, and has said enough since the last; what no guard has judged is not noted. */
export const areNotesDue = (context: ReducedContext): boolean =>
  Option.exists(context.config.memory, ({ keepsSummary }) => keepsSummary) &&
  context.isAnswered &&
  context.pendingCalls.length === 0 &&
  countShown(context) - context.notes.tried >= notesBounds.everyMessages &&
  (Option.isNone(context.config.guard) || findUnjudged(context).length === 0)
