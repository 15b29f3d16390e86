/**
 * Every checker of a simulation, by name.
 *
 * Together they are the promises of the server: nothing lost, nothing twice,
 * nothing unapproved, and logs that say what happened.
 */
import { checkActs } from "./check-acts.ts"
import { checkGraph } from "./check-graph.ts"
import { checkLogs } from "./check-logs.ts"
import { checkReactions } from "./check-reactions.ts"
import { checkReview } from "./check-review.ts"
import type { Checker, Complaint, Remains } from "./remains.ts"

const checkers: Readonly<Record<string, Checker>> = {
  ...checkGraph,
  ...checkReactions,
  ...checkActs,
  ...checkReview,
  ...checkLogs
}

/** Asks every checker. */
export const check = (remains: Remains): ReadonlyArray<Complaint> =>
  Object.entries(checkers).flatMap(([checker, find]) => find(remains).map((detail) => ({ checker, detail })))

export const checkerNames: ReadonlyArray<string> = Object.keys(checkers)
