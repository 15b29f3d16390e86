/**
 * What the checkers look at, and what a checker is.
 *
 * A checker is a pure question to what a simulation left; it answers with a
 * sentence for each thing that should not be.
 */
import type { Acknowledged } from "./people.ts"
import type { EntryRow, Rows, RunRow } from "./rows.ts"

/** The rows, and what people and servers noticed while they came to be. */
export interface Remains extends Rows {
  readonly acknowledged: Acknowledged
  /** What the foreign shop truly did, each deed as often as it did it. */
  readonly deeds: ReadonlyArray<string>
  /** Since when nothing went wrong any more, in milliseconds of the world's clock. */
  readonly calmSinceMs: number
  /** What servers logged as errors. */
  readonly errors: ReadonlyArray<string>
  /** Words of the errors that were made to happen: what a server logs of them is expected. */
  readonly excuses: ReadonlyArray<string>
}

export type Checker = (remains: Remains) => ReadonlyArray<string>

/** Something that should not be. */
export interface Complaint {
  readonly checker: string
  readonly detail: string
}

/** A sentence when something is not so. */
export const unless = (isSo: boolean, sentence: string): ReadonlyArray<string> => (isSo ? [] : [sentence])

/** Whether numbers are 1, 2, 3 … in this order. */
export const countsUp = (numbers: ReadonlyArray<number | null>): boolean =>
  numbers.every((number, index) => number === index + 1)

/** One text for several values. */
export const keyOf = (...parts: ReadonlyArray<string | number>): string => parts.join(" ")

/** Whether a person asked for the run: then it begins a chain of its own, whatever events it handles. */
export const isAskedFor = (run: RunRow): boolean => run.rootEventId === run.id

/** Answers whether a person asked for an entry: by its run, or by naming its object where a rule had refused the event. */
export const askedFor = ({ acknowledged, events, runs }: Remains): ((entry: EntryRow) => boolean) => {
  const asked = new Set(runs.filter(isAskedFor).map(({ id }) => id))
  const named = new Set(acknowledged.named.map(({ agentId, objectId }) => keyOf(agentId, objectId)))
  const refused = new Set(
    events.flatMap(({ id, refusals }) => refusals.map(({ agentId }) => keyOf(agentId, id)))
  )
  return ({ agentId, eventId, graphObjectId, runId }) =>
    asked.has(runId ?? "") ||
    (named.has(keyOf(agentId, graphObjectId)) && refused.has(keyOf(agentId, eventId)))
}
