/**
 * The rows of model calls as the database gives them, turned into the domain's words.
 *
 * Flow: graph → outbox → dispatch → **run** → tool → task
 */
import { microsPerDollar } from "@tropism/domain/chain"
import type { ContextName } from "@tropism/domain/context-event"
import { usageDetails } from "@tropism/domain/run"
import type { FlowStepAtWork, ModelCall, ModelExchange } from "@tropism/domain/model-call"

export interface ModelCallRow {
  readonly number: number
  readonly purpose: ModelCall["purpose"]
  readonly step: number
  readonly try: number
  readonly provider: string
  readonly model: string
  readonly contextName: ContextName
  readonly afterEvent: number
  readonly answerEvent: number | null
  readonly toolsDigest: string | null
  readonly parameters: ModelExchange["request"]["parameters"]
  readonly finishReason: string | null
  readonly error: string | null
  readonly inputTokens: number
  readonly outputTokens: number
  readonly cachedInputTokens: number
  readonly cacheWriteTokens: number
  readonly reasoningTokens: number
  readonly usageEstimated: boolean
  readonly costMicros: bigint | null
  readonly startedAt: Date
  readonly firstOutputMs: number | null
  readonly durationMs: number
}

export const toModelCall = (row: ModelCallRow, flowStep: FlowStepAtWork | null): ModelCall => ({
  number: row.number,
  purpose: row.purpose,
  step: row.step,
  flowStep,
  try: row.try,
  provider: row.provider,
  model: row.model,
  status: row.answerEvent === null ? "failed" : "answered",
  finishReason: row.finishReason,
  error: row.error,
  usage: {
    inputTokens: row.inputTokens,
    outputTokens: row.outputTokens,
    ...usageDetails(row)
  },
  isUsageEstimated: row.usageEstimated,
  costUsd: toDollars(row.costMicros),
  startedAt: row.startedAt.toISOString(),
  firstOutputMs: row.firstOutputMs,
  durationMs: row.durationMs,
  afterEvent: row.afterEvent,
  answerEvent: row.answerEvent
})

export const toDollars = (micros: bigint | null): number | null =>
  micros === null ? null : Number(micros) / microsPerDollar
