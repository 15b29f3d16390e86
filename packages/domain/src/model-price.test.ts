/** Tokens and a price make money, in whole millionths of a dollar. */
import { describe, expect, it } from "vitest"
import { costMicrosOf, free } from "./model-price.ts"

const usage = { inputTokens: 1_000, outputTokens: 10 }
const price = { inputPerMillion: 0.15, outputPerMillion: 0.6 }

describe("what a model request costs", () => {
  it("is its tokens at their price, in millionths of a dollar, rounded up", () => {
    expect(costMicrosOf(price, usage)).toBe(156)
    expect(costMicrosOf(price, { inputTokens: 1, outputTokens: 0 })).toBe(1)
    expect(
      costMicrosOf({ inputPerMillion: 1.1, outputPerMillion: 0 }, { inputTokens: 10, outputTokens: 0 })
    ).toBe(11)
  })

  it("is less for input that the provider still had, where the price says so", () => {
    const cached = { ...usage, cachedInputTokens: 800 }
    expect(costMicrosOf({ ...price, cachedInputPerMillion: 0.075 }, cached)).toBe(30 + 60 + 6)
    expect(costMicrosOf(price, cached)).toBe(156)
    expect(costMicrosOf({ ...price, cachedInputPerMillion: 0 }, { ...usage, cachedInputTokens: 9_999 })).toBe(
      6
    )
  })

  it("is more for input that the provider keeps for later, where the price says so", () => {
    const written = { ...usage, cachedInputTokens: 100, cacheWriteTokens: 800 }
    const rates = {
      inputPerMillion: 1,
      outputPerMillion: 2,
      cachedInputPerMillion: 0.1,
      cacheWritePerMillion: 1.25
    }
    expect(costMicrosOf(rates, written)).toBe(100 + 10 + 1_000 + 20)
    expect(costMicrosOf({ ...rates, cacheWritePerMillion: null }, written)).toBe(900 + 10 + 20)
  })

  it("is that of long prompts for the whole request, from the first token over the bound", () => {
    const banded = { ...price, longPrompts: { overTokens: 1_000, inputPerMillion: 3, outputPerMillion: 6 } }
    expect(costMicrosOf(banded, usage)).toBe(156)
    expect(costMicrosOf(banded, { ...usage, inputTokens: 1_001 })).toBe(3_003 + 60)
  })

  it("is unknown without a price, and nothing where it is free", () => {
    expect(costMicrosOf(null, usage)).toBeNull()
    expect(costMicrosOf(free, usage)).toBe(0)
  })
})
