/**
 * An agent: a definition that is versioned and runs when it is triggered.
 *
 * `AgentInput` is what somebody sends, with optional fields absent or null;
 * `AgentDefinition` is what is kept, every default said. A run pins the version
 * it started with. There is one agent entity: no definition row beside it.
 */
import { Schema } from "effect"
import { AgentWarning } from "./agent-warning.ts"
import { Budget } from "./budget.ts"
import { defaultTools } from "./built-in-tools.ts"
import { Capabilities, ExecutionMode, HybridPolicy } from "./capability.ts"
import { defineFlowStep, flowBounds, FlowStep, FlowStepInput, FlowType } from "./flow.ts"
import { AgentId, Timestamp, UserId } from "./ids.ts"
import { ModelConfig } from "./model-config.ts"
import { canonicalJson } from "./json.ts"
import { defineReaction, ReactionConfig, ReactionInput } from "./reaction.ts"
import { findReactionFault } from "./reaction-faults.ts"
import { findReducerFault, ReducerConfig } from "./prompt-window.ts"
import { CatchUp, OverlapPolicy } from "./schedule.ts"
import { ToolPatterns } from "./tool-pattern.ts"

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

/** An agent that may be spawned: its name, with * as a wildcard. */
const AgentPattern = Schema.String.check(
  Schema.isPattern(/^[A-Za-z0-9_.*-]{1,100}$/, {
    message: "A sub-agent is named by its name, with * as a wildcard: researcher or research-*"
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

/** What an agent's suggestions may ask of people, when its definition says nothing of it. */
export const reviewDefaults = { maxPending: 1_000 } as const

/** How an agent's suggestions wait for people: how many, for how long, and for whom. */
export const ReviewPolicy = Schema.Struct({
  /** Suggestions that may wait at once; one more is refused until people have decided. */
  maxPending: opt(Schema.Int.check(Schema.isBetween({ minimum: 1, maximum: 10_000 }))),
  /** From the agent's last words to the end of the wait, up to a year; null, or absent: it waits for ever. */
  expiresAfterMs: opt(Schema.Int.check(Schema.isBetween({ minimum: 1, maximum: 31_536_000_000 }))),
  /** Who is asked to decide; anybody else with the role may. */
  assignee: opt(UserId)
}).annotate({ identifier: "ReviewPolicy" })
export type ReviewPolicy = typeof ReviewPolicy.Type

/** What an agent's safeguards are when its definition says nothing of them; `reactionTimeoutMs` is the time of a run of one that reacts. */
export const safeguardDefaults = {
  maxPendingRuns: 1_000,
  disableAfterFailures: 10,
  reactionTimeoutMs: 900_000
} as const

/** How long a run may take, in milliseconds: up to a week. */
export const TimeoutMs = Schema.Int.check(Schema.isBetween({ minimum: 1, maximum: 604_800_000 }))

/** Model requests of one run. */
export const MaxSteps = Schema.Int.check(Schema.isBetween({ minimum: 1, maximum: 10_000 }))

const PromptText = Schema.String.check(Schema.isBetweenLength(1, 100_000))

const fields = {
  name: AgentName,
  role: opt(Schema.String.check(Schema.isMaxLength(1_000))),
  prompt: PromptText,
  systemPrompt: opt(Schema.String.check(Schema.isMaxLength(100_000))),
  model: opt(ModelConfig),
  flowType: opt(FlowType),
  steps: opt(Schema.Array(FlowStepInput).check(Schema.isMaxLength(flowBounds.maxSteps))),
  maxIterations: opt(Schema.Int.check(Schema.isBetween({ minimum: 1, maximum: flowBounds.maxIterations }))),
  tools: opt(ToolPatterns),
  triggerType: TriggerType,
  cronSchedule: opt(Schema.String.check(Schema.isBetweenLength(1, 200))),
  timezone: opt(Schema.String.check(Schema.isBetweenLength(1, 100))),
  reactionConfig: opt(ReactionInput),
  executionMode: opt(ExecutionMode),
  hybridPolicy: opt(HybridPolicy),
  capabilities: opt(Capabilities),
  maxSteps: opt(MaxSteps),
  defaultTimeoutMs: opt(TimeoutMs),
  budget: opt(Budget),
  subAgents: opt(Schema.Array(AgentPattern).check(Schema.isMaxLength(100))),
  repeatableTools: opt(ToolPatterns),
  reducer: opt(ReducerConfig),
  catchUp: opt(CatchUp),
  overlapPolicy: opt(OverlapPolicy),
  retryPolicy: opt(RetryPolicy),
  reviewPolicy: opt(ReviewPolicy),
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
  flowType: FlowType,
  /** The steps of a sequential flow, or of each iteration of a loop. */
  steps: Schema.Array(FlowStep),
  /** Of a loop; null for the other flows. */
  maxIterations: Schema.NullOr(Schema.Int),
  /** Names and globs; [] is none. Left out they are those of the graph that the capabilities do not forbid. */
  tools: Schema.Array(Schema.String),
  triggerType: TriggerType,
  cronSchedule: Schema.NullOr(Schema.String),
  timezone: Schema.String,
  reactionConfig: Schema.NullOr(ReactionConfig),
  executionMode: ExecutionMode,
  hybridPolicy: Schema.NullOr(HybridPolicy),
  capabilities: Schema.NullOr(Capabilities),
  /** Model requests of one run; null is unbounded, and 50 for a run that another spawned (S002-R18, R19). */
  maxSteps: Schema.NullOr(Schema.Int),
  /** How long a run may take before it is asked to stop; null is unbounded (S002-R26). An agent that reacts has 15 minutes unless it is given. */
  defaultTimeoutMs: Schema.NullOr(Schema.Int),
  budget: Schema.NullOr(Budget),
  /** Names of the agents that it may spawn, with * as a wildcard; [] is none. */
  subAgents: Schema.Array(Schema.String),
  /** Tools that may be called again and again with the same arguments, such as one that polls. */
  repeatableTools: Schema.Array(Schema.String),
  /** How much of a log its model is shown, in its chats and runs; null sums up above 100,000 tokens (S003-R62). */
  reducer: Schema.NullOr(ReducerConfig),
  /** Which missed instants of a schedule are made up for after downtime. */
  catchUp: CatchUp,
  /** What a schedule does when its earlier run has not ended. */
  overlapPolicy: OverlapPolicy,
  retryPolicy: Schema.NullOr(RetryPolicy),
  reviewPolicy: Schema.NullOr(ReviewPolicy),
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
  /** What of the definition does not hold as things are now; [] is nothing. */
  warnings: Schema.Array(AgentWarning),
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
  steps: (input.steps ?? []).map(defineFlowStep),
  maxIterations: input.maxIterations ?? (input.flowType === "loop" ? flowBounds.defaultIterations : null),
  tools: input.tools ?? defaultTools(input.capabilities ?? null),
  triggerType: input.triggerType,
  cronSchedule: input.cronSchedule?.trim().replace(/\s+/g, " ") ?? null,
  timezone: input.timezone ?? "UTC",
  reactionConfig: input.reactionConfig ? defineReaction(input.reactionConfig) : null,
  executionMode: input.executionMode ?? "suggest",
  hybridPolicy: input.hybridPolicy ?? null,
  capabilities: input.capabilities ?? null,
  maxSteps: input.maxSteps ?? null,
  defaultTimeoutMs:
    input.defaultTimeoutMs ?? (input.triggerType === "reaction" ? safeguardDefaults.reactionTimeoutMs : null),
  budget: input.budget ?? null,
  subAgents: input.subAgents ?? [],
  repeatableTools: input.repeatableTools ?? [],
  reducer: input.reducer ?? null,
  catchUp: input.catchUp ?? "one",
  overlapPolicy: input.overlapPolicy ?? "skip",
  retryPolicy: input.retryPolicy ?? null,
  reviewPolicy: input.reviewPolicy ?? null,
  maxPendingRuns: input.maxPendingRuns ?? safeguardDefaults.maxPendingRuns,
  disableAfterFailures: input.disableAfterFailures ?? safeguardDefaults.disableAfterFailures,
  enabled: input.enabled ?? true
})

/** Changes a definition by a patch: absent fields stay, null goes back to the default. */
export const patchAgent = (definition: AgentDefinition, patch: AgentPatch): AgentDefinition =>
  defineAgent({
    ...definition,
    ...withoutIterations(definition, patch),
    ...withFollowingTools(definition, patch),
    ...patch
  })

/** A loop that becomes another flow takes its iterations along with it only where the patch says so. */
const withoutIterations = ({ flowType }: AgentDefinition, patch: AgentPatch): AgentPatch =>
  flowType === "loop" && patch.flowType !== undefined && patch.flowType !== "loop"
    ? { maxIterations: null }
    : {}

/** Tools that are the default follow the capabilities. */
const withFollowingTools = ({ capabilities, tools }: AgentDefinition, patch: AgentPatch): AgentPatch =>
  patch.capabilities !== undefined && canonicalJson(tools) === canonicalJson(defaultTools(capabilities))
    ? { tools: null }
    : {}

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
  const inFlow =
    isNew("flowType", definition, before) ||
    isNew("steps", definition, before) ||
    isNew("maxIterations", definition, before)
      ? findFlowFault(definition)
      : undefined
  if (inFlow) return inFlow
  const { reactionConfig, reducer, tools } = definition
  const inRule =
    reactionConfig && isNew("reactionConfig", definition, before)
      ? findReactionFault(reactionConfig)
      : undefined
  if (inRule) return inRule
  const inReducer = reducer && isNew("reducer", definition, before) ? findReducerFault(reducer) : undefined
  if (inReducer) return { pointer: `/reducer/${inReducer.field}`, message: inReducer.message }
  return isNew("tools", definition, before) ? findTwice("/tools", tools) : undefined
}

/** What a flow's type demands of its steps and iterations. */
export const findFlowFault = ({
  flowType,
  maxIterations,
  steps
}: Pick<AgentDefinition, "flowType" | "maxIterations" | "steps">): DefinitionFault | undefined => {
  if (flowType === "sequential" && steps.length === 0)
    return { pointer: "/steps", message: "A sequential flow needs at least one step: {name, prompt}" }
  if (flowType === "single" && steps.length > 0)
    return { pointer: "/steps", message: "A single flow has no steps: set flowType to sequential or loop" }
  if (flowType !== "loop" && maxIterations !== null)
    return { pointer: "/maxIterations", message: "Only a loop has iterations: set flowType to loop" }
  for (const [index, { name, tools }] of steps.entries()) {
    if (steps.findIndex((step) => step.name === name) < index)
      return { pointer: `/steps/${index}/name`, message: `There are two steps named ${name}` }
    const twice = findTwice(`/steps/${index}/tools`, tools ?? [])
    if (twice) return twice
  }
  return undefined
}

const findTwice = (pointer: string, tools: ReadonlyArray<string>): DefinitionFault | undefined => {
  const index = tools.findIndex((tool, place) => tools.indexOf(tool) < place)
  return index === -1
    ? undefined
    : { pointer: `${pointer}/${index}`, message: `The tool ${tools[index]} is named twice: name it once` }
}
