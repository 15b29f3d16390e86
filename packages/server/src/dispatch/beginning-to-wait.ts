/**
 * How an entry begins to wait: until when, and why.
 *
 * Flow: graph → outbox → **dispatch** → run → tool → task
 *
 * Only the beginning: what may begin at once is released at the end of the same transaction.
 */
import type { ReactionConfig } from "@tropism/domain/reaction"
import { firstDueMs, firstWait, standsInLine, type Wait, waitSentences } from "@tropism/domain/waiting"
import type { NewEntry } from "../run/processing-log.ts"
import { allowanceOf, type Standing } from "./standing.ts"

/** The part of a waiting entry that follows from its agent's rule; `isFirst` where nothing of the agent waits yet. */
export const beginningToWait = (
  config: ReactionConfig,
  standing: Standing,
  isFirst: boolean
): Pick<NewEntry, "runId" | "exclusive" | "dueAt" | "reason" | "standsInLine"> => {
  const dueAtMs = firstDueMs(config, standing.now.getTime(), isFirst)
  return {
    runId: null,
    exclusive: false,
    dueAt: dueAtMs === null ? null : new Date(dueAtMs).toISOString(),
    reason: waitSentences[firstReasonOf(config, standing)],
    standsInLine: standsInLine(config) && config.batchSize === 1
  }
}

/** For others of its kind, else for what holds the agent back now. */
const firstReasonOf = (config: ReactionConfig, standing: Standing): Wait => {
  const first = firstWait(config)
  const { runs, wait } = allowanceOf(standing)
  return first === "debounce" || first === "batch" || runs > 0 ? first : wait
}
