/**
 * Every checker of a simulation, by name.
 *
 * Together they are the promises of the server: nothing lost, nothing twice,
 * nothing unapproved, and logs that say what happened.
 */
import { checkActs } from "./check-acts.ts"
import { checkBacktests } from "./check-backtests.ts"
import { checkChains } from "./check-chains.ts"
import { checkChats } from "./check-chats.ts"
import { checkClients } from "./check-clients.ts"
import { checkComparisons } from "./check-comparisons.ts"
import { checkDeliveries } from "./check-deliveries.ts"
import { checkFiles } from "./check-files.ts"
import { checkForks } from "./check-forks.ts"
import { checkGraph } from "./check-graph.ts"
import { checkGuards } from "./check-guards.ts"
import { checkKeys } from "./check-keys.ts"
import { checkLogs } from "./check-logs.ts"
import { checkMemory } from "./check-memory.ts"
import { checkRadio } from "./check-radio.ts"
import { checkReactions } from "./check-reactions.ts"
import { checkReview } from "./check-review.ts"
import { checkTodos } from "./check-todos.ts"
import { checkRules } from "./check-rules.ts"
import { checkShop } from "./check-shop.ts"
import { checkTaint } from "./check-taint.ts"
import { checkTrust } from "./check-trust.ts"
import { checkUndos } from "./check-undos.ts"
import { checkWaking } from "./check-waking.ts"
import { checkWork } from "./check-work.ts"
import type { Checker, Complaint, Remains } from "./remains.ts"

const checkers: Readonly<Record<string, Checker>> = {
  ...checkGraph,
  ...checkWaking,
  ...checkReactions,
  ...checkRadio,
  ...checkDeliveries,
  ...checkChains,
  ...checkRules,
  ...checkActs,
  ...checkGuards,
  ...checkShop,
  ...checkWork,
  ...checkReview,
  ...checkTaint,
  ...checkTrust,
  ...checkTodos,
  ...checkUndos,
  ...checkBacktests,
  ...checkChats,
  ...checkClients,
  ...checkFiles,
  ...checkForks,
  ...checkMemory,
  ...checkComparisons,
  ...checkKeys,
  ...checkLogs
}

/** Asks every checker. */
export const check = (remains: Remains): ReadonlyArray<Complaint> =>
  Object.entries(checkers).flatMap(([checker, find]) => find(remains).map((detail) => ({ checker, detail })))

export const checkerNames: ReadonlyArray<string> = Object.keys(checkers)
