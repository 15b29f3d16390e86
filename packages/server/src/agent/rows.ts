/**
 * An agent's row as the database gives it, turned into the domain's words and back.
 *
 * Flow: graph → outbox → dispatch → run → tool → task, beside it **agent** → model
 */
import type { Agent, AgentDefinition } from "@tropism/domain/agent"
import { AgentInput, defineAgent } from "@tropism/domain/agent"
import { Effect, Schema } from "effect"

export interface AgentRow extends Omit<Agent, "nextFireAt" | "createdAt" | "updatedAt"> {
  readonly nextFireAt: Date | null
  readonly createdAt: Date
  readonly updatedAt: Date
}

export const toAgent = (row: AgentRow): Agent => ({
  id: row.id,
  version: row.version,
  name: row.name,
  role: row.role,
  prompt: row.prompt,
  systemPrompt: row.systemPrompt,
  model: row.model,
  flowType: row.flowType,
  steps: row.steps,
  maxIterations: row.maxIterations,
  tools: row.tools,
  triggerType: row.triggerType,
  cronSchedule: row.cronSchedule,
  timezone: row.timezone,
  reactionConfig: row.reactionConfig,
  executionMode: row.executionMode,
  hybridPolicy: row.hybridPolicy,
  capabilities: row.capabilities,
  maxSteps: row.maxSteps,
  defaultTimeoutMs: row.defaultTimeoutMs,
  budget: row.budget,
  subAgents: row.subAgents,
  repeatableTools: row.repeatableTools,
  catchUp: row.catchUp,
  overlapPolicy: row.overlapPolicy,
  retryPolicy: row.retryPolicy,
  reviewPolicy: row.reviewPolicy,
  maxPendingRuns: row.maxPendingRuns,
  disableAfterFailures: row.disableAfterFailures,
  enabled: row.enabled,
  disabledReason: row.disabledReason,
  nextFireAt: row.nextFireAt?.toISOString() ?? null,
  createdAt: row.createdAt.toISOString(),
  updatedAt: row.updatedAt.toISOString()
})

/** The columns that say the definition. */
export const columnsOf = (definition: AgentDefinition) => ({
  name: definition.name,
  role: definition.role,
  prompt: definition.prompt,
  systemPrompt: definition.systemPrompt,
  flowType: definition.flowType,
  steps: JSON.stringify(definition.steps),
  maxIterations: definition.maxIterations,
  triggerType: definition.triggerType,
  cronSchedule: definition.cronSchedule,
  timezone: definition.timezone,
  executionMode: definition.executionMode,
  maxSteps: definition.maxSteps,
  defaultTimeoutMs: definition.defaultTimeoutMs,
  budget: json(definition.budget),
  model: json(definition.model),
  reactionConfig: json(definition.reactionConfig),
  hybridPolicy: json(definition.hybridPolicy),
  capabilities: json(definition.capabilities),
  retryPolicy: json(definition.retryPolicy),
  reviewPolicy: json(definition.reviewPolicy)
})

const json = (value: unknown): string | null => (value === null ? null : JSON.stringify(value))

/** A version that was kept before a field existed gets that field's default. */
export const decodeDefinition = (kept: unknown) =>
  Effect.map(Schema.decodeUnknownEffect(AgentInput)(kept), defineAgent)
