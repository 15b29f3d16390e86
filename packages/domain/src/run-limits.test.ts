/**
 * What one run may use, and when it has spent it.
 */
import { describe, expect, it } from "@effect/vitest"
import { findSpent } from "./budget.ts"
import { limitsOf } from "./run-limits.ts"

const definition = (maxSteps: number | null) => ({
  maxSteps,
  defaultTimeoutMs: 60_000,
  budget: { perRun: { maxTokens: 1_000, maxCostUsd: null }, perDay: { maxTokens: 5 } }
})

describe("Requirement: Step Limit Enforcement", () => {
  it.each([
    ["S002-R18 a spawned run without a bound has 50 steps", null, true, null, 50],
    ["S002-R18 a spawned run whose agent says so has as many", 7, true, null, 7],
    ["S002-R19 a run that nobody spawned is unbounded", null, false, null, null],
    ["what was set for the run takes precedence", 7, false, { maxSteps: 3 }, 3],
    ["and may lift the bound", 7, true, { maxSteps: null }, null],
    ["what was not set for it stays the agent's", 7, false, { timeoutMs: 5 }, 7]
  ] as const)("%s", (_, maxSteps, isSpawned, overrides, expected) => {
    expect(limitsOf(definition(maxSteps), isSpawned, overrides).maxSteps).toBe(expected)
  })
  it("time, tokens and money are the agent's, or those of the run", () => {
    expect(limitsOf(definition(null), false, null)).toEqual({
      maxSteps: null,
      timeoutMs: 60_000,
      maxTokens: 1_000,
      maxCostUsd: null
    })
    expect(limitsOf(definition(null), false, { timeoutMs: 5, maxCostUsd: 2 })).toEqual({
      maxSteps: null,
      timeoutMs: 5,
      maxTokens: 1_000,
      maxCostUsd: 2
    })
    expect(limitsOf({ maxSteps: null, defaultTimeoutMs: null, budget: null }, false, null)).toEqual({
      maxSteps: null,
      timeoutMs: null,
      maxTokens: null,
      maxCostUsd: null
    })
  })
})

describe("a budget", () => {
  const spent = { inputTokens: 600, outputTokens: 400, costMicros: 2_500_000 }
  it.each([
    ["nothing bounds it", {}, undefined],
    ["null bounds it as little", { maxTokens: null, maxCostUsd: null }, undefined],
    ["one token is left", { maxTokens: 1_001 }, undefined],
    ["tokens read and written come to the bound", { maxTokens: 1_000 }, "runTokens"],
    ["a millionth of a dollar is left", { maxCostUsd: 2.500001 }, undefined],
    ["its money is spent", { maxCostUsd: 2.5 }, "runCost"],
    ["nothing may be spent", { maxTokens: 0 }, "runTokens"]
  ] as const)("where %s", (_, limit, rule) => {
    expect(findSpent({ type: "run" }, spent, limit)?.rule).toBe(rule)
  })
  it("is told with what was spent, and of whom", () => {
    expect(findSpent({ type: "run" }, spent, { maxTokens: 900 })).toEqual({
      rule: "runTokens",
      reason: expect.stringMatching(/\b1000 .*\b900\b/)
    })
    expect(findSpent({ type: "agent", name: "clerk" }, spent, { maxCostUsd: 2 })).toEqual({
      rule: "agentCost",
      reason: expect.stringMatching(/\bclerk\b.*UTC.*\$2\.5.* .*\$2\b/)
    })
    const above = { type: "runAbove", runId: "1", agentName: "lead" } as const
    expect(findSpent(above, spent, { maxTokens: 5 })).toEqual({
      rule: "runTokens",
      reason: expect.stringMatching(/\b1\b.*\blead\b.*\b1000 .*\b5\b/)
    })
  })
})
