/**
 * How the events that woke an agent wait for a run: the rules of a reaction
 * about time and number, judged on plain numbers.
 *
 * Events of one object that wait for the same agent are a line, oldest first.
 * What may go together, when, and how much of it, follows from the rule as it is
 * when a run could begin, not from the rule as it was when the event came.
 */
import type { ReactionConfig } from "./reaction.ts"

/** How long a debounced or batched event waits at most, when the rule does not say. */
export const waitDefaults = {
  /** So many times the quiet time. */
  debounceMaxTimes: 10,
  batchMaxWaitMs: 1_000
} as const

type Waits = Pick<ReactionConfig, "debounceMs" | "maxWaitMs" | "batchSize">
type Rule = Waits & Pick<ReactionConfig, "concurrencyStrategy" | "rateLimit" | "maxConcurrency">

const maxWaitOf = ({ debounceMs, maxWaitMs }: Waits): number =>
  maxWaitMs ?? (debounceMs > 0 ? debounceMs * waitDefaults.debounceMaxTimes : waitDefaults.batchMaxWaitMs)

/** When events that came between two instants may be released, the batch not being full. */
export const dueMs = (rule: Waits, firstMs: number, lastMs: number): number => {
  if (rule.debounceMs > 0) return Math.min(lastMs + rule.debounceMs, firstMs + maxWaitOf(rule))
  return rule.batchSize > 1 ? firstMs + maxWaitOf(rule) : firstMs
}

/**
 * The instants before which nobody needs to look at events that come now, oldest first.
 *
 * **Details** Of a batch one entry brings the releaser back after the quiet time;
 * the others need it only when they have waited for as long as they may.
 */
export const firstDueMs = (rule: Waits, nowMs: number, isFirst: boolean): number | null => {
  if (rule.debounceMs === 0 && rule.batchSize === 1) return null
  const isHint = isFirst || rule.batchSize === 1
  return isHint ? dueMs(rule, nowMs, nowMs) : nowMs + maxWaitOf(rule)
}

/** Whether a run may be at work on an object only alone: everything but `parallel`. */
export const isExclusive = ({ concurrencyStrategy }: Rule): boolean => concurrencyStrategy !== "parallel"

/**
 * Whether an event is dropped because a run is at work on its object.
 *
 * **Details** With `skip` every one is but the object's last: behind a deletion nothing comes that would tell the agent of it.
 */
export const isDroppedAtWork = ({ concurrencyStrategy }: Rule, eventType: string): boolean =>
  concurrencyStrategy === "skip" && eventType !== "deleted"

/** Whether nothing in the rule makes an event wait while nothing is at work: it gets its run at once, or is skipped. */
export const isImmediate = (rule: Rule): boolean =>
  (rule.concurrencyStrategy === "skip" || rule.concurrencyStrategy === "parallel") &&
  rule.debounceMs === 0 &&
  rule.batchSize === 1 &&
  rule.rateLimit === null &&
  rule.maxConcurrency === null

/** Whether the events of one object stand in line: one of them is looked at and stands for all. */
export const standsInLine = (rule: Rule): boolean => isExclusive(rule) || rule.debounceMs > 0

/**
 * Whether a run takes the whole line of an object.
 *
 * **Details** `queue` alone takes one event after the other; told to wait for
 * quiet or to gather batches, it takes the line, in order.
 */
export const takesLine = (rule: Rule): boolean =>
  standsInLine(rule) && (rule.concurrencyStrategy !== "queue" || rule.debounceMs > 0 || rule.batchSize > 1)

/** Why an entry waits. */
export type Wait =
  | "debounce"
  | "batch"
  | "object"
  | "rateLimit"
  | "concurrency"
  | "pendingRuns"
  | "stopped"
  | "turn"

export const waitSentences: Readonly<Record<Wait, string>> = {
  debounce: "It waits until its object has been quiet for the agent's debounceMs.",
  batch: "It waits for more events, until the agent's batchSize or the longest wait is reached.",
  object: "It waits for the end of the run that is at work on this object, and for earlier events of it.",
  rateLimit: "The agent has begun as many runs as its rateLimit allows for now.",
  concurrency: "The agent has as many runs at work as its maxConcurrency allows.",
  pendingRuns: "The agent has as many runs queued and running as its maxPendingRuns allows.",
  stopped: "A kill switch has stopped the agents; the event is kept until it is released.",
  turn: "It waits for its turn."
}

/** The reason with which an event begins to wait. */
export const firstWait = (rule: Rule): Wait => {
  if (rule.debounceMs > 0) return "debounce"
  if (rule.batchSize > 1) return "batch"
  return rule.concurrencyStrategy === "latest" || rule.concurrencyStrategy === "queue" ? "object" : "turn"
}
