/**
 * Rejects invalid definitions: contradictory, never firing, with unknown names, or with a prompt or script that cannot be parsed.
 *
 * A schedule is checked against the minimum interval only when it is new or becomes active, so that an agent with an accepted schedule can
 * always be changed otherwise, and above all be disabled.
 */
import { type AgentDefinition, findDefinitionFault, findFlowFault, isNew } from "@tropism/domain/agent"
import type { OfferingServer } from "@tropism/domain/agent-warning"
import { findUnknownTool, spawnTool } from "@tropism/domain/built-in-tools"
import type { Workflow } from "@tropism/domain/context-config"
import type { JsonFault } from "@tropism/domain/json"
import { type EventServer, findListenerFault } from "@tropism/domain/mcp-event"
import { findOptionsFault, type ModelConfig, type ModelRef } from "@tropism/domain/model-config"
import { isClientPattern, isWithin } from "@tropism/domain/tool-pattern"
import { Effect, Schema } from "effect"
import { builtInScriptNames } from "../models/built-in-scripts.ts"
import { findScriptFault } from "../models/script.ts"
import { checkFloor, checkTimezone, readSchedule } from "./cron-schedules.ts"
import { findPromptFault, findStepPromptFault } from "./template.ts"

/** An error in an agent's definition, with its JSON pointer. */
export class DefinitionRefused extends Schema.TaggedError<DefinitionRefused>()("DefinitionRefused", {
  reason: Schema.Literals(["invalid", "nameTaken", "version"]),
  pointer: Schema.String,
  detail: Schema.String
}) {}

/** What a definition is checked against besides itself. */
export interface Measure {
  readonly now: Date
  readonly minScheduleSeconds: number
  /** The external servers of the project. */
  readonly servers: ReadonlyArray<EventServer>
  /** The tools that they offer to agents. */
  readonly offering: ReadonlyArray<OfferingServer>
}

/** Returns the definition or fails; `before` is the current definition of an existing agent. */
export const checkDefinition = Effect.fnUntraced(function* (
  definition: AgentDefinition,
  before: AgentDefinition | undefined,
  measure: Measure
) {
  const fault =
    findDefinitionFault(definition, before) ??
    findBlankPrompt(definition, before) ??
    findPromptFault(definition, before) ??
    findToolFault(definition, before) ??
    findModelFault(definition, before) ??
    findEventFault(definition, before, measure)
  if (fault)
    return yield* new DefinitionRefused({ reason: "invalid", pointer: fault.pointer, detail: fault.message })
  yield* Effect.mapError(
    checkSchedule(definition, before, measure),
    ({ pointer, detail }) => new DefinitionRefused({ reason: "invalid", pointer, detail })
  )
  return definition
})

/**
 * Returns the first error in a workflow for conversations with an agent, with pointers into a definition.
 *
 * **Details** Its steps may do no more than the agent: their tools are a subset of the agent's.
 */
export const findWorkflowFault = (agent: AgentDefinition, workflow: Workflow): JsonFault | undefined =>
  findFlowFault(workflow) ??
  findBlankStep(workflow) ??
  findStepPromptFault(workflow) ??
  findStepToolFault(workflow) ??
  findToolBeyond(agent, workflow) ??
  findStepModelFault(agent.name, workflow)

type Steps = Pick<AgentDefinition, "steps">

const onlyBlanks = "There are only blanks in it: say what the agent is to do"

/** Finds a blank prompt, which would make an empty model request. */
const findBlankPrompt = (definition: AgentDefinition, before: AgentDefinition | undefined) => {
  if (isNew("prompt", definition, before) && definition.prompt.trim() === "")
    return { pointer: "/prompt", message: onlyBlanks }
  return isNew("steps", definition, before) ? findBlankStep(definition) : undefined
}

const findBlankStep = ({ steps }: Steps): JsonFault | undefined => {
  const blank = steps.findIndex(({ prompt }) => prompt.trim() === "")
  return blank === -1 ? undefined : { pointer: `/steps/${blank}/prompt`, message: onlyBlanks }
}

/** Finds an event of an external server that the project does not have or does not allow. */
const findEventFault = (
  definition: AgentDefinition,
  before: AgentDefinition | undefined,
  { servers }: Measure
) =>
  isNew("reactionConfig", definition, before)
    ? findListenerFault(definition.reactionConfig?.mcpEvents ?? [], servers)
    : undefined

/** Finds an unknown built-in tool, or one that cannot work with the agent's settings. */
const findToolFault = (definition: AgentDefinition, before: AgentDefinition | undefined) => {
  const isNewSteps = isNew("steps", definition, before)
  const fault =
    (isNew("tools", definition, before) ? findUnknownTool("/tools", definition.tools) : undefined) ??
    (isNewSteps ? findStepToolFault(definition) : undefined) ??
    (isNew("repeatableTools", definition, before)
      ? findUnknownTool("/repeatableTools", definition.repeatableTools)
      : undefined)
  if (fault) return fault
  const isJudged = isNewSteps || isNew("tools", definition, before) || isNew("subAgents", definition, before)
  const named = [definition.tools, ...definition.steps.map(({ tools }) => tools ?? [])].flat()
  return isJudged && definition.subAgents.length === 0 && named.includes(spawnTool)
    ? { pointer: "/subAgents", message: `The agent has the tool ${spawnTool}: name whom it may spawn` }
    : undefined
}

const findStepToolFault = ({ steps }: Steps): JsonFault | undefined => {
  for (const [index, { tools }] of steps.entries()) {
    const fault = findUnknownTool(`/steps/${index}/tools`, tools ?? [])
    if (fault) return fault
  }
  return undefined
}

/** Finds a guard with nothing to judge, and a guard or race on a single step: both belong to the agent. */
const findWatchFault = (model: ModelConfig | null, isOfStep: boolean, pointer: string) => {
  const { guard, race } = model ?? {}
  if (isOfStep && race)
    return { pointer: `${pointer}/race`, message: "A race is the agent's: set /model/race" }
  if (!guard) return undefined
  if (isOfStep) return { pointer: `${pointer}/guard`, message: "A guard is the agent's: set /model/guard" }
  if (guard.provider === "replay")
    return {
      pointer: `${pointer}/guard/provider`,
      message: "A recorded run cannot judge: name a model that can be asked"
    }
  return guard.provider === "scripted" && !builtInScriptNames.includes(guard.name)
    ? { pointer: `${pointer}/guard/name`, message: `There is no built-in script named ${guard.name}` }
    : undefined
}

/** Finds a step's tool that the agent itself does not have; client tools belong to the context. */
const findToolBeyond = (agent: AgentDefinition, { steps }: Steps): JsonFault | undefined => {
  for (const [index, { tools }] of steps.entries())
    for (const [place, tool] of (tools ?? []).entries())
      if (!isClientPattern(tool) && !isWithin(agent.tools, tool))
        return {
          pointer: `/steps/${index}/tools/${place}`,
          message: `The agent ${agent.name} does not have ${tool}: a step has tools of the agent, or fewer. It has ${agent.tools.join(", ") || "none"}`
        }
  return undefined
}

/** Finds an error in the agent's own model, or in the model of a step. */
const findModelFault = (definition: AgentDefinition, before: AgentDefinition | undefined) => {
  const { model, name } = definition
  const own = isNew("model", definition, before)
    ? (findScriptOf(name, model, "/model") ??
      findWatchFault(model, false, "/model") ??
      (model ? findOptionsFault(model, "/model") : undefined))
    : undefined
  return own ?? (isNew("steps", definition, before) ? findStepModelFault(name, definition) : undefined)
}

const findStepModelFault = (agentName: string, { steps }: Steps): JsonFault | undefined => {
  for (const [index, { model }] of steps.entries()) {
    const pointer = `/steps/${index}/model`
    const fault =
      findScriptOf(agentName, model, pointer) ??
      findWatchFault(model, true, pointer) ??
      (model ? findOptionsFault(model, pointer) : undefined)
    if (fault) return fault
  }
  return undefined
}

const findScriptOf = (agentName: string, model: ModelConfig | null, pointer: string) =>
  model?.script
    ? findScriptFault(model.script, `${pointer}/script`)
    : findMissingScript(agentName, model, pointer)

/** Finds a scripted model, or scripted fallback, without a script. */
const findMissingScript = (agentName: string, model: ModelConfig | null, pointer: string) => {
  const isMissing = (ref: ModelRef) =>
    ref.provider === "scripted" && ![ref.name, agentName].some((name) => builtInScriptNames.includes(name))
  const messageFor = (name: string) =>
    `There is no built-in script named ${name} or ${agentName}: give the model a script`
  if (model && isMissing(model)) return { pointer: `${pointer}/script`, message: messageFor(model.name) }
  return model?.fallback && isMissing(model.fallback)
    ? { pointer: `${pointer}/fallback/name`, message: messageFor(model.fallback.name) }
    : undefined
}

const checkSchedule = Effect.fnUntraced(function* (
  { cronSchedule, enabled, timezone }: AgentDefinition,
  before: AgentDefinition | undefined,
  { minScheduleSeconds, now }: Measure
) {
  if (cronSchedule === null) return yield* checkTimezone(timezone)
  const rule = yield* readSchedule(cronSchedule, timezone, now)
  if (cronSchedule !== before?.cronSchedule || (enabled && !before.enabled))
    yield* checkFloor(cronSchedule, rule, minScheduleSeconds)
})
