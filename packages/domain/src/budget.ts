/**
 * What an agent may spend on models: in one run, and in a day.
 *
 * Checked before a model is asked, never after, and counted where the step is
 * kept; runs that are at work at the same time overrun a budget by at most one
 * request each. The budgets of chains are the project's (`chain.ts`).
 */
import { Schema } from "effect"
import { type ChainUse, microsPerDollar, type ReachedCap, tellDollars } from "./chain.ts"
import { Usage } from "./run.ts"

/** Accepts null as absent. */
const opt = <S extends Schema.Top>(schema: S) => Schema.optional(Schema.NullOr(schema))

/** A bound of tokens, read and written, and of dollars; absent is unbounded. */
export const SpendingLimit = Schema.Struct({
  maxTokens: opt(Schema.Int.check(Schema.isBetween({ minimum: 0, maximum: 1_000_000_000_000 }))),
  maxCostUsd: opt(Schema.Finite.check(Schema.isBetween({ minimum: 0, maximum: 1_000_000 })))
}).annotate({ identifier: "SpendingLimit" })
export type SpendingLimit = typeof SpendingLimit.Type

export const Budget = Schema.Struct({
  /** Of one run, with all the runs that it spawns. */
  perRun: opt(SpendingLimit),
  /** Of the agent's own requests of one day, UTC, in all its runs. */
  perDay: opt(SpendingLimit)
}).annotate({ identifier: "Budget" })
export type Budget = typeof Budget.Type

/** What an agent has used in one day, UTC. */
export const AgentDay = Schema.Struct({
  /** `2026-11-22`. */
  date: Schema.String,
  /** Runs whose first model request was on this day. */
  runs: Schema.Int,
  usage: Usage,
  /** Dollars of the requests whose price is known. */
  costUsd: Schema.Finite
}).annotate({ identifier: "AgentDay" })
export type AgentDay = typeof AgentDay.Type

/** What an agent has used of one model. */
export const AgentModelUse = Schema.Struct({
  provider: Schema.String,
  model: Schema.String,
  /** Those that were answered. */
  requests: Schema.Int,
  usage: Usage,
  /** The share of the input that came from the provider's cache, from 0 to 1. */
  cacheHitRate: Schema.Finite,
  /** Dollars; null where no price is known. */
  costUsd: Schema.NullOr(Schema.Finite),
  /** Those of them that the input from the cache cost. */
  cachedInputCostUsd: Schema.NullOr(Schema.Finite)
}).annotate({ identifier: "AgentModelUse" })
export type AgentModelUse = typeof AgentModelUse.Type

/** Tokens and money, in millionths of a dollar. */
export type Spent = Pick<ChainUse, "inputTokens" | "outputTokens" | "costMicros">

/** Whose bound it is: of the run, of one that it works for, of its backtest, or of the agent. */
export type Spender =
  | { readonly type: "run" }
  | { readonly type: "backtest" }
  | { readonly type: "runAbove"; readonly runId: string; readonly agentName: string }
  | { readonly type: "agent"; readonly name: string }

/** The bound that is reached, if one is: then no model is asked. */
export const findSpent = (
  spender: Spender,
  use: Spent,
  { maxCostUsd, maxTokens }: SpendingLimit
): ReachedCap | undefined => {
  const tokens = use.inputTokens + use.outputTokens
  const isAgent = spender.type === "agent"
  const who = nameOf(spender)
  const when = isAgent ? " of today (UTC)" : ""
  if (typeof maxTokens === "number" && tokens >= maxTokens)
    return {
      rule: isAgent ? "agentTokens" : "runTokens",
      reason: `${who} has spent its token budget${when}: ${tokens} of ${maxTokens} tokens.`
    }
  if (typeof maxCostUsd === "number" && use.costMicros >= maxCostUsd * microsPerDollar)
    return {
      rule: isAgent ? "agentCost" : "runCost",
      reason: `${who} has spent its money${when}: ${tellDollars(use.costMicros)} of ${tellDollars(maxCostUsd * microsPerDollar)}.`
    }
  return undefined
}

const nameOf = (spender: Spender): string => {
  switch (spender.type) {
    case "run":
      return "The run"
    case "backtest":
      return "The backtest"
    case "runAbove":
      return `The run ${spender.runId} of ${spender.agentName}, for which this one works,`
    case "agent":
      return `The agent ${spender.name}`
  }
}
