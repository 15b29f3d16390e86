/**
 * An agent: a definition that is versioned and runs when it is triggered.
 *
 * `AgentInput` is what somebody sends, with optional fields absent or null;
 * `AgentDefinition` is what is kept, every default said. A run pins the version
 * it started with. There is one agent entity: no definition row beside it.
 */
import { Schema } from "effect"
import { Capabilities, ExecutionMode, HybridPolicy } from "./capability.ts"
import { AgentId, Timestamp } from "./ids.ts"
import { ModelConfig } from "./model-config.ts"
import { canonicalJson } from "./json.ts"
import { defineReaction, ReactionConfig, ReactionInput } from "./reaction.ts"
import { findReactionFault } from "./reaction-faults.ts"
import { CatchUp, OverlapPolicy } from "./schedule.ts"

export const TriggerType = Schema.Literals(["reaction", "schedule", "manual", "webhook"])
export type TriggerType = typeof TriggerType.Type

/** Accepts null as absent. */
const opt = <S extends Schema.Top>(schema: S) => Schema.optional(Schema.NullOr(schema))

/** `:` separates a context's name from an event's number, so no name holds it. */
export const AgentName = Schema.String.check(
  Schema.isPattern(/^[A-Za-z0-9][A-Za-z0-9_.-]{0,99}$/, {
    message:
      "A name has 1 to 100 letters, digits, dots, dashes or underscores and begins with a letter or digit"
  })
)

const ToolPattern = Schema.String.check(
  Schema.isPattern(/^[A-Za-z0-9_*-]+\.[A-Za-z0-9_*-]+$/, {
    message: "A tool is named server.tool, with * as a wildcard: graph.* or graph.get_object"
  })
)

/** Whether a failed or abandoned reaction is tried again without being asked; none by default (S001-R59, F05). */
export const RetryPolicy = Schema.Struct({
  /** Tries of one entry in all, the first included. */
  maxAttempts: Schema.Int.check(Schema.isBetween({ minimum: 2, maximum: 5 })),
  /** Between the end of a try and the next; it doubles with each. */
  backoffMs: Schema.Int.check(Schema.isBetween({ minimum: 0, maximum: 3_600_000 }))
}).annotate({ identifier: "RetryPolicy" })
export type RetryPolicy = typeof RetryPolicy.Type

/** What an agent's safeguards are when its definition says nothing of them. */
export const safeguardDefaults = { maxPendingRuns: 1_000, disableAfterFailures: 10 } as const

const PromptText = Schema.String.check(Schema.isBetweenLength(1, 100_000))

const fields = {
  name: AgentName,
  role: opt(Schema.String.check(Schema.isMaxLength(1_000))),
  prompt: PromptText,
  systemPrompt: opt(Schema.String.check(Schema.isMaxLength(100_000))),
  model: opt(ModelConfig),
  flowType: opt(Schema.Literals(["single"])),
  tools: opt(Schema.Array(ToolPattern).check(Schema.isMaxLength(100))),
  triggerType: TriggerType,
  cronSchedule: opt(Schema.String.check(Schema.isBetweenLength(1, 200))),
  timezone: opt(Schema.String.check(Schema.isBetweenLength(1, 100))),
  reactionConfig: opt(ReactionInput),
  executionMode: opt(ExecutionMode),
  hybridPolicy: opt(HybridPolicy),
  capabilities: opt(Capabilities),
  maxSteps: opt(Schema.Int.check(Schema.isBetween({ minimum: 1, maximum: 10_000 }))),
  catchUp: opt(CatchUp),
  overlapPolicy: opt(OverlapPolicy),
  retryPolicy: opt(RetryPolicy),
  maxPendingRuns: opt(Schema.Int.check(Schema.isBetween({ minimum: 1, maximum: 1_000_000 }))),
  disableAfterFailures: opt(Schema.Int.check(Schema.isBetween({ minimum: 1, maximum: 1_000_000 }))),
  enabled: opt(Schema.Boolean)
}

/** What a caller sends to create an agent. */
export const AgentInput = Schema.Struct(fields).annotate({ identifier: "AgentInput" })
export type AgentInput = typeof AgentInput.Type

/** What a caller sends to change an agent: the fields that change; null sets an optional field back to its default. */
export const AgentPatch = Schema.Struct({
  ...fields,
  name: Schema.optionalKey(AgentName),
  prompt: Schema.optionalKey(PromptText),
  triggerType: Schema.optionalKey(TriggerType)
}).annotate({ identifier: "AgentPatch" })
export type AgentPatch = typeof AgentPatch.Type

/** An agent's definition as it is kept. */
export const AgentDefinition = Schema.Struct({
  name: AgentName,
  role: Schema.NullOr(Schema.String),
  prompt: Schema.String,
  systemPrompt: Schema.NullOr(Schema.String),
  model: Schema.NullOr(ModelConfig),
  flowType: Schema.Literals(["single"]),
  tools: Schema.Array(Schema.String),
  triggerType: TriggerType,
  cronSchedule: Schema.NullOr(Schema.String),
  timezone: Schema.String,
  reactionConfig: Schema.NullOr(ReactionConfig),
  executionMode: ExecutionMode,
  hybridPolicy: Schema.NullOr(HybridPolicy),
  capabilities: Schema.NullOr(Capabilities),
  maxSteps: Schema.NullOr(Schema.Int),
  /** Which missed instants of a schedule are made up for after downtime. */
  catchUp: CatchUp,
  /** What a schedule does when its earlier run has not ended. */
  overlapPolicy: OverlapPolicy,
  retryPolicy: Schema.NullOr(RetryPolicy),
  /** Runs that may wait or work at once before a trigger through a door is refused with 429. */
  maxPendingRuns: Schema.Int,
  /** Failures in a row after which the agent is disabled. */
  disableAfterFailures: Schema.Int,
  enabled: Schema.Boolean
})
export type AgentDefinition = typeof AgentDefinition.Type

/** An agent as the API answers it. */
export const Agent = Schema.Struct({
  id: AgentId,
  version: Schema.Int,
  ...AgentDefinition.fields,
  /** Why the agent is disabled, when it is not a person's choice. */
  disabledReason: Schema.NullOr(Schema.String),
  nextFireAt: Schema.NullOr(Timestamp),
  createdAt: Timestamp,
  updatedAt: Timestamp
}).annotate({ identifier: "Agent" })
export type Agent = typeof Agent.Type

/** Fills in every default of an agent. */
export const defineAgent = (input: AgentInput): AgentDefinition => ({
  name: input.name,
  role: input.role ?? null,
  prompt: input.prompt,
  systemPrompt: input.systemPrompt ?? null,
  model: input.model ?? null,
  flowType: input.flowType ?? "single",
  tools: input.tools ?? [],
  triggerType: input.triggerType,
  cronSchedule: input.cronSchedule?.trim().replace(/\s+/g, " ") ?? null,
  timezone: input.timezone ?? "UTC",
  reactionConfig: input.reactionConfig ? defineReaction(input.reactionConfig) : null,
  executionMode: input.executionMode ?? "suggest",
  hybridPolicy: input.hybridPolicy ?? null,
  capabilities: input.capabilities ?? null,
  maxSteps: input.maxSteps ?? null,
  catchUp: input.catchUp ?? "one",
  overlapPolicy: input.overlapPolicy ?? "skip",
  retryPolicy: input.retryPolicy ?? null,
  maxPendingRuns: input.maxPendingRuns ?? safeguardDefaults.maxPendingRuns,
  disableAfterFailures: input.disableAfterFailures ?? safeguardDefaults.disableAfterFailures,
  enabled: input.enabled ?? true
})

/** Changes a definition by a patch: absent fields stay, null goes back to the default. */
export const patchAgent = (definition: AgentDefinition, patch: AgentPatch): AgentDefinition =>
  defineAgent({ ...definition, ...patch })

/** A definition that contradicts itself, with a JSON pointer to the wrong place. */
export interface DefinitionFault {
  readonly pointer: string
  readonly message: string
}

/** Whether a save is the one that says this of the agent: what was taken once never stands in the way of another change. */
export const isNew = (
  field: keyof AgentDefinition,
  definition: AgentDefinition,
  before: AgentDefinition | undefined
): boolean => before === undefined || canonicalJson(before[field]) !== canonicalJson(definition[field])

/** Finds what one field demands of another, and what the save of a new rule or new tools gets wrong (S000-R02). */
export const findDefinitionFault = (
  definition: AgentDefinition,
  before?: AgentDefinition
): DefinitionFault | undefined => {
  if (definition.triggerType === "reaction" && definition.reactionConfig === null) {
    return {
      pointer: "/reactionConfig",
      message: "An agent with triggerType reaction needs a reactionConfig that names objectTypes and events"
    }
  }
  if (definition.triggerType === "schedule" && definition.cronSchedule === null) {
    return {
      pointer: "/cronSchedule",
      message: "An agent with triggerType schedule needs a cronSchedule, e.g. 0 9 * * 1-5"
    }
  }
  const { reactionConfig, tools } = definition
  const inRule =
    reactionConfig && isNew("reactionConfig", definition, before)
      ? findReactionFault(reactionConfig)
      : undefined
  return inRule ?? (isNew("tools", definition, before) ? findTwice(tools) : undefined)
}

const findTwice = (tools: ReadonlyArray<string>): DefinitionFault | undefined => {
  const index = tools.findIndex((tool, place) => tools.indexOf(tool) < place)
  return index === -1
    ? undefined
    : { pointer: `/tools/${index}`, message: `The tool ${tools[index]} is named twice: name it once` }
}
