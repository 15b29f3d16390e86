/**
 * What a model request costs.
 *
 * A price is dollars for a million tokens; money is counted in millionths of a
 * dollar, so both are the same number. A price that nobody knows is null, and so
 * is the cost then: "free" and "unknown" are not the same. Where the figures
 * come from is the server's business.
 */
import { Schema } from "effect"
import type { Usage } from "./run.ts"

/** Accepts null as absent. */
const opt = <S extends Schema.Top>(schema: S) => Schema.optional(Schema.NullOr(schema))

const Dollars = Schema.Finite.check(Schema.isBetween({ minimum: 0, maximum: 1_000_000 }))

const Rates = {
  inputPerMillion: Dollars,
  outputPerMillion: Dollars,
  /** Of input that the provider still had from an earlier request; without it, that costs what other input does. */
  cachedInputPerMillion: opt(Dollars),
  /** Of input that the provider keeps for a later request; without it, that costs what other input does. */
  cacheWritePerMillion: opt(Dollars)
}

/** What a million tokens cost, in dollars; without a price a request counts tokens and no money. */
export const ModelPrice = Schema.Struct({
  ...Rates,
  /** What holds for the whole request when its input is longer than so many tokens. */
  longPrompts: opt(
    Schema.Struct({ overTokens: Schema.Int.check(Schema.isGreaterThanOrEqualTo(1)), ...Rates })
  )
}).annotate({ identifier: "ModelPrice" })
export type ModelPrice = typeof ModelPrice.Type

/** Nothing is charged: a script, a recorded run. */
export const free: ModelPrice = { inputPerMillion: 0, outputPerMillion: 0 }

/** What a request costs, in millionths of a dollar, rounded up; null where no price is known. */
export const costMicrosOf = (price: ModelPrice | null, usage: Usage): number | null => {
  if (price === null) return null
  const { cacheWriteTokens = 0, cachedInputTokens = 0, inputTokens, outputTokens } = usage
  const { cacheWritePerMillion, inputPerMillion, outputPerMillion } = ratesOf(price, usage)
  const cached = Math.min(cachedInputTokens, inputTokens)
  const written = Math.min(cacheWriteTokens, inputTokens - cached)
  return upMicros(
    (inputTokens - cached - written) * inputPerMillion +
      cachedMicrosOf(price, usage) +
      written * (cacheWritePerMillion ?? inputPerMillion) +
      outputTokens * outputPerMillion
  )
}

/** What of that the input from the provider's cache costs. */
export const cachedCostMicrosOf = (price: ModelPrice | null, usage: Usage): number | null =>
  price === null ? null : upMicros(cachedMicrosOf(price, usage))

const ratesOf = (price: ModelPrice, { inputTokens }: Usage) =>
  price.longPrompts && inputTokens > price.longPrompts.overTokens ? price.longPrompts : price

const cachedMicrosOf = (price: ModelPrice, usage: Usage): number => {
  const { cachedInputPerMillion, inputPerMillion } = ratesOf(price, usage)
  return (
    Math.min(usage.cachedInputTokens ?? 0, usage.inputTokens) * (cachedInputPerMillion ?? inputPerMillion)
  )
}

/** Sums of fractions miss a whole number by less than this. */
const upMicros = (micros: number): number => Math.max(0, Math.ceil(micros - 1e-6))
