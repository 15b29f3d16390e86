/**
 * An agent's history: which versions there were, who made them, and what changed.
 *
 * And the opposite direction: agents as files say they should be. A file says
 * only what is not the default, so what `leanAgent` leaves out is exactly what
 * `defineAgent` fills in.
 */
import { Schema } from "effect"
import {
  type Agent,
  type AgentDefinition,
  AgentDefinition as Definition,
  AgentInput,
  defineAgent
} from "./agent.ts"
import { AgentWarning } from "./agent-warning.ts"
import { AgentId, Timestamp } from "./ids.ts"
import { defineFlowStep, type FlowStep, type FlowStepInput } from "./flow.ts"
import { canonicalJson } from "./json.ts"
import { JsonDifference } from "./json-diff.ts"
import { defineReaction, type ReactionConfig, type ReactionInput } from "./reaction.ts"

const origin = {
  version: Schema.Int,
  createdBy: Schema.String,
  createdAt: Timestamp,
  /** The version that this one went back to; null for one that a person wrote. */
  restoredFrom: Schema.NullOr(Schema.Int)
}

/** A version in the list: who made it, when, and which fields it changed. */
export const AgentVersionSummary = Schema.Struct({
  ...origin,
  /** JSON pointers of what differs from the version before; [] for the first. */
  changed: Schema.Array(Schema.String)
}).annotate({ identifier: "AgentVersionSummary" })
export type AgentVersionSummary = typeof AgentVersionSummary.Type

/** A version with its definition. */
export const AgentVersionRecord = Schema.Struct({
  ...origin,
  agentId: AgentId,
  definition: Definition
}).annotate({ identifier: "AgentVersionRecord" })
export type AgentVersionRecord = typeof AgentVersionRecord.Type

/** What lies between two versions; `from` is null before the first. */
export const AgentVersionDiff = Schema.Struct({
  agentId: AgentId,
  from: Schema.NullOr(Schema.Int),
  to: Schema.Int,
  changes: Schema.Array(JsonDifference)
}).annotate({ identifier: "AgentVersionDiff" })
export type AgentVersionDiff = typeof AgentVersionDiff.Type

/** Definitions that one request applies. */
export const applyMaxAgents = 500

/** Agents as they should be, by name. All of them become so, or none does. */
export const ApplyInput = Schema.Struct({
  agents: Schema.Array(AgentInput).check(Schema.isBetweenLength(1, applyMaxAgents)),
  /** Only says what would change. */
  dryRun: Schema.optional(Schema.NullOr(Schema.Boolean)),
  /** Deletes the agents that were applied once and are not among these. */
  prune: Schema.optional(Schema.NullOr(Schema.Boolean))
}).annotate({ identifier: "ApplyInput" })
export type ApplyInput = typeof ApplyInput.Type

/** What became of one agent, or would become of it. */
export const AppliedAgent = Schema.Struct({
  name: Schema.String,
  outcome: Schema.Literals(["created", "updated", "unchanged", "deleted"]),
  /** null for an agent that a dry run would create. */
  id: Schema.NullOr(AgentId),
  /** The version that it has, or would have. */
  version: Schema.Int,
  changes: Schema.Array(JsonDifference),
  /** What of the definition does not hold as things are now; [] is nothing. */
  warnings: Schema.Array(AgentWarning)
}).annotate({ identifier: "AppliedAgent" })
export type AppliedAgent = typeof AppliedAgent.Type

/** The definition that an agent has at present. */
export const definitionOf = (agent: Agent): AgentDefinition => {
  const {
    id: _id,
    version: _version,
    disabledReason: _reason,
    nextFireAt: _next,
    warnings: _warnings,
    createdAt: _created,
    updatedAt: _updated,
    ...definition
  } = agent
  return definition
}

/** The least that says a definition: every field that is not the default. */
export const leanAgent = (definition: AgentDefinition): AgentInput => {
  const { flowType, name, prompt, steps, tools, triggerType, reactionConfig } = definition
  const needed = { name, triggerType, prompt }
  const defaults = defineAgent(needed)
  // How often a loop goes round has a default of its own.
  const { maxIterations } = defineAgent({ ...needed, flowType })
  const lean = withoutDefaults(definition, { ...defaults, maxIterations })
  return {
    ...needed,
    ...lean,
    // Tools are always said: where an agent has none, a definition that is silent about them gives it none.
    tools,
    ...(steps.length === 0 ? {} : { steps: steps.map(leanStep) }),
    ...(reactionConfig ? { reactionConfig: leanReaction(reactionConfig) } : {})
  }
}

const leanStep = (step: FlowStep): FlowStepInput => {
  const needed = { name: step.name, prompt: step.prompt }
  return { ...needed, ...withoutDefaults(step, defineFlowStep(needed)) }
}

const leanReaction = (config: ReactionConfig): ReactionInput => {
  const needed = { objectTypes: config.objectTypes, events: config.events }
  return { ...needed, ...withoutDefaults(config, defineReaction(needed)) }
}

const withoutDefaults = <A extends object>(value: A, defaults: A): Partial<A> =>
  Object.fromEntries(
    Object.entries(value).filter(
      ([field, item]) => canonicalJson(item) !== canonicalJson(Reflect.get(defaults, field))
    )
  ) as Partial<A>
