/**
 * What an agent may spend on models: in one run, and in a day.
 *
 * Checked before a model is asked, never after, and counted where the step is
 * kept; runs that are at work at the same time overrun a budget by at most one
 * request each. The budgets of chains are the project's (`chain.ts`).
 */
import { Schema } from "effect"
import { type ChainUse, microsPerDollar, type ReachedCap, tellDollars } from "./chain.ts"

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
  /** Of all runs of the agent in one day, UTC. */
  perDay: opt(SpendingLimit)
}).annotate({ identifier: "Budget" })
export type Budget = typeof Budget.Type

/** Tokens and money, in millionths of a dollar. */
export type Spent = Pick<ChainUse, "inputTokens" | "outputTokens" | "costMicros">

/** The bound that is reached, if one is: then no model is asked. */
export const findSpent = (
  whose: "run" | "agent",
  use: Spent,
  { maxCostUsd, maxTokens }: SpendingLimit
): ReachedCap | undefined => {
  const tokens = use.inputTokens + use.outputTokens
  const [name, when] = whose === "run" ? ["The run", ""] : ["The agent", " of today"]
  if (typeof maxTokens === "number" && tokens >= maxTokens)
    return {
      rule: `${whose}Tokens`,
      reason: `${name} has spent its token budget${when}: ${tokens} of ${maxTokens} tokens.`
    }
  if (typeof maxCostUsd === "number" && use.costMicros >= maxCostUsd * microsPerDollar)
    return {
      rule: `${whose}Cost`,
      reason: `${name} has spent its money${when}: ${tellDollars(use.costMicros)} of ${tellDollars(maxCostUsd * microsPerDollar)}.`
    }
  return undefined
}
