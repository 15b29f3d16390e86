/**
 * The limits of a run as the texts of a form, and back as what is asked for.
 *
 * Pure. Only what was changed is sent, so that what was left alone stays the agent's own.
 */
import type { RunLimits } from "@tropism/domain/run"
import { numberSent } from "../words/number-sent.ts"

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

export const changedLimits = (before: LimitTexts, after: LimitTexts): Readonly<Record<string, unknown>> => {
  const isChanged = (name: keyof LimitTexts): boolean =>
    after[name].trim() !== "" && after[name] !== before[name]
  return {
    ...(isChanged("maxTokens") && { maxTokens: numberSent(after.maxTokens) }),
    ...(isChanged("maxCostUsd") && { maxCostUsd: numberSent(after.maxCostUsd) }),
    ...(isChanged("maxSteps") && { maxSteps: numberSent(after.maxSteps) }),
    ...(isChanged("timeoutSeconds") && { timeoutMs: millisSent(after.timeoutSeconds) })
  }
}

const millisSent = (seconds: string): number | string => {
  const sent = numberSent(seconds)
  return typeof sent === "number" ? Math.round(sent * 1_000) : sent
}
