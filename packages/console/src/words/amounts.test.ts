/**
 * Amounts are short, have their unit, and never look like nothing when they are something.
 */
import { describe, expect, it } from "@effect/vitest"
import { countText, moneyText, tokensText } from "./amounts.ts"

describe("amounts", () => {
  it.each([
    [0, "0 tokens"],
    [1, "1 token"],
    [9_999, "9,999 tokens"],
    [12_450, "12.4 k tokens"],
    [999_999, "999.9 k tokens"],
    [1_200_000, "1.2 M tokens"]
  ])("%d tokens are %s", (tokens, text) => {
    expect(tokensText(tokens)).toBe(text)
  })

  it.each([
    [0, "$0"],
    [0.000_001, "under $0.00001"],
    [0.000_042, "$0.000042"],
    [0.004_23, "$0.0042"],
    [0.1, "$0.10"],
    [1.5, "$1.50"],
    [1_234.567, "$1,234.57"]
  ])("%d dollars are %s", (dollars, text) => {
    expect(moneyText(dollars)).toBe(text)
  })

  it("counts have their noun", () => {
    expect([countText(1, "run"), countText(2, "run"), countText(2, "reply", "replies")]).toEqual([
      "1 run",
      "2 runs",
      "2 replies"
    ])
  })
})
