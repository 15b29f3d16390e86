/**
 * What one run may use, as its agent and whoever began or resumed it say.
 */
import type { Budget } from "./budget.ts"
import type { LimitOverrides, RunLimits } from "./run.ts"

/** Steps of a run that another spawned and whose agent sets no bound (S002-R18). */
export const spawnedMaxSteps = 50

/** What a run may use: what was set for it, else what its agent says. */
export const limitsOf = (
  definition: {
    readonly maxSteps: number | null
    readonly defaultTimeoutMs: number | null
    readonly budget: Budget | null
  },
  isSpawned: boolean,
  overrides: LimitOverrides | null
): RunLimits => ({
  maxSteps: definition.maxSteps ?? (isSpawned ? spawnedMaxSteps : null),
  timeoutMs: definition.defaultTimeoutMs,
  maxTokens: definition.budget?.perRun?.maxTokens ?? null,
  maxCostUsd: definition.budget?.perRun?.maxCostUsd ?? null,
  ...overrides
})
