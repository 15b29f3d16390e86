/**
 * When a chain has used what it may use, and what a model request costs.
 */
import { describe, expect, it } from "@effect/vitest"
import {
  chainBounds,
  defineChainLimits,
  findDepthCap,
  findReachedCap,
  findSpentBudget,
  nothingUsed
} from "./chain.ts"
import { defineSettings, patchSettings } from "./project-settings.ts"

const limits = defineChainLimits({ maxDepth: 4, maxRuns: 2, maxTokens: 100, maxCostUsd: 0.01 })

describe("the caps of a chain", () => {
  it("S001-R04 have defaults where a project says nothing", () => {
    expect(defineChainLimits({})).toEqual({
      maxDepth: chainBounds.maxDepth.default,
      maxRuns: chainBounds.maxRuns.default,
      maxTokens: null,
      maxCostUsd: null
    })
  })

  it.each([
    [3, undefined],
    [4, "chainDepth"],
    [9, "chainDepth"]
  ])("S001-R04 at depth %i", (depth, rule) => {
    expect(findDepthCap(depth, limits)?.rule).toBe(rule)
  })

  it.each([
    [{ runs: 1 }, undefined],
    [{ runs: 2 }, "chainRuns"],
    [{ inputTokens: 60, outputTokens: 39 }, undefined],
    [{ inputTokens: 60, outputTokens: 40 }, "chainTokens"],
    [{ costMicros: 9_999 }, undefined],
    [{ costMicros: 10_000 }, "chainCost"]
  ])("S001-R04 after %j", (used, rule) => {
    const use = { ...nothingUsed, ...used }
    expect(findReachedCap(use, limits)?.rule).toBe(rule)
    // A run that has its place works on, whatever others the chain has led to.
    expect(findSpentBudget(use, limits)?.rule).toBe(rule === "chainRuns" ? undefined : rule)
  })

  it("tells its numbers", () => {
    const spent = findSpentBudget({ ...nothingUsed, costMicros: 12_500 }, limits)
    expect(spent?.reason).toMatch(/\$0\.0125 .*\$0\.01\b/)
    expect(findReachedCap({ ...nothingUsed, runs: 2 }, limits)?.reason).toMatch(/\b2 .*\b2\b/)
  })

  it("without a budget nothing is spent, and a budget of nothing is spent at once", () => {
    const used = { ...nothingUsed, inputTokens: 1e9, costMicros: 1e9 }
    expect(findSpentBudget(used, defineChainLimits({}))).toBeUndefined()
    expect(findSpentBudget(nothingUsed, defineChainLimits({ maxTokens: 0 }))?.rule).toBe("chainTokens")
  })
})

describe("a project's settings", () => {
  it("keep what was set, and take null for the default", () => {
    const kept = patchSettings({ chainLimits: { maxDepth: 2 } }, { chainLimits: { maxRuns: 5 } })
    expect(defineSettings(kept).chainLimits).toMatchObject({ maxDepth: 2, maxRuns: 5 })
    expect(defineSettings(patchSettings(kept, { chainLimits: { maxRuns: null } })).chainLimits).toMatchObject(
      {
        maxDepth: 2,
        maxRuns: chainBounds.maxRuns.default
      }
    )
    expect(patchSettings(kept, {})).toEqual(kept)
    expect(defineSettings(patchSettings(kept, { chainLimits: null }))).toEqual(defineSettings({}))
  })
})
