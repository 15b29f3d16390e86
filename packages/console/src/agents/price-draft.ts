/**
 * What a model costs, as a form holds it: dollars for a million tokens, in text.
 *
 * Pure. Null is the price that the server knows.
 */
import type { ModelPrice } from "@tropism/domain/model-price"
import { numberGiven, numberText, type Sent } from "./draft-texts.ts"

export interface RatesDraft {
  readonly input: string
  readonly output: string
  readonly cached: string
  readonly cacheWrite: string
}

export interface PriceDraft extends RatesDraft {
  /** What longer prompts cost; null is the same. */
  readonly long: (RatesDraft & { readonly overTokens: string }) | null
}

export const emptyPrice: PriceDraft = { input: "", output: "", cached: "", cacheWrite: "", long: null }

export const emptyLong = { input: "", output: "", cached: "", cacheWrite: "", overTokens: "" }

export const priceDraftOf = (price: ModelPrice | null | undefined): PriceDraft | null => {
  if (!price) return null
  const { longPrompts } = price
  return {
    ...ratesDraftOf(price),
    long: longPrompts
      ? { ...ratesDraftOf(longPrompts), overTokens: numberText(longPrompts.overTokens) }
      : null
  }
}

export const priceOf = (price: PriceDraft | null): Sent =>
  price === null
    ? {}
    : {
        price: {
          ...ratesOf(price),
          ...(price.long !== null && {
            longPrompts: { ...numberGiven("overTokens", price.long.overTokens), ...ratesOf(price.long) }
          })
        }
      }

const ratesDraftOf = (
  rates: Pick<
    ModelPrice,
    "inputPerMillion" | "outputPerMillion" | "cachedInputPerMillion" | "cacheWritePerMillion"
  >
): RatesDraft => ({
  input: numberText(rates.inputPerMillion),
  output: numberText(rates.outputPerMillion),
  cached: numberText(rates.cachedInputPerMillion),
  cacheWrite: numberText(rates.cacheWritePerMillion)
})

const ratesOf = ({ input, output, cached, cacheWrite }: RatesDraft): Sent => ({
  ...numberGiven("inputPerMillion", input),
  ...numberGiven("outputPerMillion", output),
  ...numberGiven("cachedInputPerMillion", cached),
  ...numberGiven("cacheWritePerMillion", cacheWrite)
})
