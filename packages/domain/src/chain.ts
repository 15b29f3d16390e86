/**
 * What a chain may use before it ends, and the judgement whether it has.
 *
 * A chain is everything that descends from one root event. Its caps belong to
 * the project; what it has used is counted in the database, in a row of its
 * own, so it survives approvals, schedules, retries, batches and restarts. A
 * cap that is reached is told with its numbers.
 */
import { Schema } from "effect"

/** Accepts null as absent. */
const opt = <S extends Schema.Top>(schema: S) => Schema.optional(Schema.NullOr(schema))

/** What holds where a project says nothing, and what no project may exceed. */
export const chainBounds = {
  maxDepth: { default: 16, ceiling: 100 },
  maxRuns: { default: 100, ceiling: 10_000 },
  maxTokens: { ceiling: 1_000_000_000_000 },
  maxCostUsd: { ceiling: 1_000_000 }
} as const

const Depth = Schema.Int.check(Schema.isBetween({ minimum: 1, maximum: chainBounds.maxDepth.ceiling }))
const RunCount = Schema.Int.check(Schema.isBetween({ minimum: 1, maximum: chainBounds.maxRuns.ceiling }))
const TokenCount = Schema.Int.check(Schema.isBetween({ minimum: 0, maximum: chainBounds.maxTokens.ceiling }))
const Dollars = Schema.Finite.check(Schema.isBetween({ minimum: 0, maximum: chainBounds.maxCostUsd.ceiling }))

/** The caps of every chain of a project. */
export const ChainLimits = Schema.Struct({
  /** Agents between the root event and an event that still wakes one. */
  maxDepth: Depth,
  /** Runs that one root event may lead to. */
  maxRuns: RunCount,
  /** Tokens of all model requests, read and written; null is unbounded. */
  maxTokens: Schema.NullOr(TokenCount),
  /** Dollars of all model requests whose price is known; null is unbounded. */
  maxCostUsd: Schema.NullOr(Dollars)
}).annotate({ identifier: "ChainLimits" })
export type ChainLimits = typeof ChainLimits.Type

/** The caps that change; null sets one back to its default. */
export const ChainLimitsPatch = Schema.Struct({
  maxDepth: opt(Depth),
  maxRuns: opt(RunCount),
  maxTokens: opt(TokenCount),
  maxCostUsd: opt(Dollars)
}).annotate({ identifier: "ChainLimitsPatch" })
export type ChainLimitsPatch = typeof ChainLimitsPatch.Type

/** Fills in every default. */
export const defineChainLimits = (given: ChainLimitsPatch): ChainLimits => ({
  maxDepth: given.maxDepth ?? chainBounds.maxDepth.default,
  maxRuns: given.maxRuns ?? chainBounds.maxRuns.default,
  maxTokens: given.maxTokens ?? null,
  maxCostUsd: given.maxCostUsd ?? null
})

/** What a chain has used. Money is counted in millionths of a dollar. */
export interface ChainUse {
  readonly runs: number
  readonly inputTokens: number
  readonly outputTokens: number
  readonly costMicros: number
}

export const nothingUsed: ChainUse = { runs: 0, inputTokens: 0, outputTokens: 0, costMicros: 0 }

/** A cap that a chain, a run or an agent has reached. */
export type ChainCap =
  | "chainDepth"
  | "chainRuns"
  | "chainTokens"
  | "chainCost"
  | "runTokens"
  | "runCost"
  | "agentTokens"
  | "agentCost"

/** A cap that is reached, with the sentence that tells it. */
export interface ReachedCap {
  readonly rule: ChainCap
  readonly reason: string
}

/** The depth cap, when an event lies so deep that it wakes nobody. */
export const findDepthCap = (depth: number, { maxDepth }: ChainLimits): ReachedCap | undefined =>
  depth < maxDepth
    ? undefined
    : {
        rule: "chainDepth",
        reason: `The chain of agents that led to this event has reached its depth cap: ${depth} of at most ${maxDepth} agents in a row.`
      }

/** The budget that is spent, if one is: then no model is asked any more in this chain. */
export const findSpentBudget = (
  use: ChainUse,
  { maxCostUsd, maxTokens }: ChainLimits
): ReachedCap | undefined => {
  const tokens = use.inputTokens + use.outputTokens
  if (maxTokens !== null && tokens >= maxTokens)
    return {
      rule: "chainTokens",
      reason: `The chain that began with the same root event has spent its token budget: ${tokens} of ${maxTokens} tokens.`
    }
  if (maxCostUsd !== null && use.costMicros >= maxCostUsd * microsPerDollar)
    return {
      rule: "chainCost",
      reason: `The chain that began with the same root event has spent its money: ${tellDollars(use.costMicros)} of ${tellDollars(maxCostUsd * microsPerDollar)}.`
    }
  return undefined
}

/** The cap that keeps a chain from one more run, if any does. */
export const findReachedCap = (use: ChainUse, limits: ChainLimits): ReachedCap | undefined =>
  use.runs >= limits.maxRuns
    ? {
        rule: "chainRuns",
        reason: `The chain that began with the same root event has reached its cap of runs: ${use.runs} of at most ${limits.maxRuns}.`
      }
    : findSpentBudget(use, limits)

export const microsPerDollar = 1_000_000

/** Millionths of a dollar as a person reads them. */
export const tellDollars = (micros: number): string =>
  `$${(micros / microsPerDollar).toFixed(6).replace(/0{1,4}$/, "")}`
