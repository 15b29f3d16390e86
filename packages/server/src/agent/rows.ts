/**
 * An agent's row as the database gives it, turned into the domain's words and back.
 *
 * Flow: graph → outbox → dispatch → run → tool → task, beside it **agent** → model
 */
import type { Agent, AgentDefinition } from "@tropism/domain/agent"
import { AgentInput, defineAgent } from "@tropism/domain/agent"
import { findWarnings, type OfferingServer } from "@tropism/domain/agent-warning"
import type { ProjectId } from "@tropism/domain/ids"
import { isAllowedTool, patternedNameOf, type PinnedTool } from "@tropism/domain/mcp-server"
import { builtInServers } from "@tropism/domain/tool-pattern"
import { Effect, Schema } from "effect"
import type { SqlClient } from "effect/sql"

/** A foreign server, and the tools of it that are as they were when somebody looked. */
export interface ServerOffer {
  readonly name: string
  readonly isEnabled: boolean
  readonly allowedTools: ReadonlyArray<string>
  readonly tools: ReadonlyArray<Pick<PinnedTool, "name" | "isReadOnly">>
}

export interface AgentRow extends Omit<Agent, "nextFireAt" | "warnings" | "createdAt" | "updatedAt"> {
  /** Null where the agent names no tool of theirs. */
  readonly serverOffers: ReadonlyArray<ServerOffer> | null
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
  reducer: row.reducer,
  catchUp: row.catchUp,
  overlapPolicy: row.overlapPolicy,
  retryPolicy: row.retryPolicy,
  reviewPolicy: row.reviewPolicy,
  maxPendingRuns: row.maxPendingRuns,
  disableAfterFailures: row.disableAfterFailures,
  enabled: row.enabled,
  disabledReason: row.disabledReason,
  nextFireAt: row.nextFireAt?.toISOString() ?? null,
  warnings: findWarnings(row, (row.serverOffers ?? []).map(offeringOf)),
  createdAt: row.createdAt.toISOString(),
  updatedAt: row.updatedAt.toISOString()
})

export const offeringOf = ({ allowedTools, isEnabled, name, tools }: ServerOffer): OfferingServer => {
  const allowed = isEnabled ? tools.filter((tool) => isAllowedTool({ allowedTools }, tool.name)) : []
  const named = (some: ServerOffer["tools"]) => some.map((tool) => patternedNameOf(name, tool.name))
  return { name, tools: named(allowed), acting: named(allowed.filter(({ isReadOnly }) => !isReadOnly)) }
}

/** The foreign servers of a project as `ServerOffer`s; it depends on no row, so a statement reads it once at most. */
export const serverOffers = (sql: SqlClient.SqlClient, projectId: ProjectId) => sql`(
  select coalesce(jsonb_agg(jsonb_build_object('name', server.name, 'isEnabled', server.enabled,
    'allowedTools', server.config -> 'allowedTools', 'tools', (
      select coalesce(jsonb_agg(jsonb_build_object('name', tool -> 'name', 'isReadOnly', tool -> 'isReadOnly')), '[]') from jsonb_array_elements(server.tools) tool
      where tool ->> 'changedAt' is null))), '[]')
  from kb.mcp_servers server where server.project_id = ${projectId})`

/** Whether an agent names tools that are not built in. */
export const namesForeign = (sql: SqlClient.SqlClient) => {
  const builtIn = `^(${builtInServers.join("|")})[.]`
  return sql`(exists (select from unnest(agent.tools) pattern where pattern !~ ${builtIn})
    or jsonb_path_exists(agent.steps, ${`$[*].tools[*] ? (!(@ like_regex "${builtIn}"))`}::jsonpath))`
}

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
  reducer: json(definition.reducer),
  reviewPolicy: json(definition.reviewPolicy)
})

const json = (value: unknown): string | null => (value === null ? null : JSON.stringify(value))

/** A version that was kept before a field existed gets that field's default. */
export const decodeDefinition = (kept: unknown) =>
  Effect.map(Schema.decodeUnknownEffect(AgentInput)(kept), defineAgent)
