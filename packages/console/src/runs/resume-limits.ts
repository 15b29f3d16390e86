/**
 * The limits of a run as the texts of a form, and back as what is asked for.
 *
 * Pure. Only what was changed is sent, so that what was left alone stays the agent's own.
 */
import type { RunLimits } from "@tropism/domain/run"

export interface LimitTexts {
  readonly maxTokens: string
  readonly maxCostUsd: string
  readonly maxSteps: string
  readonly timeoutSeconds: string
}

const textOf = (amount: number | null): string => (amount === null ? "" : String(amount))

export const limitTextsOf = ({ maxTokens, maxCostUsd, maxSteps, timeoutMs }: RunLimits): LimitTexts => ({
  maxTokens: textOf(maxTokens),
  maxCostUsd: textOf(maxCostUsd),
  maxSteps: textOf(maxSteps),
  timeoutSeconds: textOf(timeoutMs === null ? null : timeoutMs / 1_000)
})

export const changedLimits = (before: LimitTexts, after: LimitTexts): Partial<RunLimits> => {
  const isChanged = (name: keyof LimitTexts): boolean =>
    after[name].trim() !== "" && after[name] !== before[name]
  return {
    ...(isChanged("maxTokens") && { maxTokens: Number(after.maxTokens) }),
    ...(isChanged("maxCostUsd") && { maxCostUsd: Number(after.maxCostUsd) }),
    ...(isChanged("maxSteps") && { maxSteps: Number(after.maxSteps) }),
    ...(isChanged("timeoutSeconds") && { timeoutMs: Math.round(Number(after.timeoutSeconds) * 1_000) })
  }
}
