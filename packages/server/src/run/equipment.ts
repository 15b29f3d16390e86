/**
 * What a run works with at each step: the model that is asked, and the tools that it is shown.
 *
 * Flow: graph → outbox → dispatch → **run** → tool → task
 *
 * Tools are connected once for each step, until the attempt ends; the model is
 * found again when something was set. A step that an event brought can do no
 * more than the agent: its tools are those of both lists.
 */
import { type ContextConfig, isClientTool, type Workflow } from "@tropism/domain/context-config"
import type { FlowStep } from "@tropism/domain/flow"
import { allows, clientServer, commonTools } from "@tropism/domain/tool-pattern"
import { Effect, Option } from "effect"
import type { AgentVersion } from "../agent/agents.ts"
import type { ModelUnavailable, ResolvedModel } from "../model/model-request.ts"
import { Models } from "../model/models.ts"
import type { RunPrincipal } from "../tool/principal.ts"
import { type ConnectedTools, ToolServers } from "../tool/tool-servers.ts"
import type { ClaimedRun } from "./claimed-run.ts"
import { guardOf } from "./guarding.ts"
import { ProviderWaits } from "./provider-waits.ts"
import { makeRecordings } from "./recordings.ts"

/** The model that is asked and the tools that it is shown. */
export interface Equipment {
  /** What was set when the model was found. */
  readonly settings: ContextConfig | undefined
  readonly model: ResolvedModel
  /** Who judges what the model reads; absent where nobody does. */
  readonly guard: ResolvedModel | undefined
  readonly tools: ConnectedTools
}

/** What a step of a flow asks and offers; the agent's own where there is no flow, or the step has none. What was set comes first where it is given. */
export type EquipmentOf = (
  flow: Workflow | undefined,
  step: string | undefined,
  settings?: ContextConfig
) => Effect.Effect<Equipment, ModelUnavailable>

export const makeEquipment = Effect.gen(function* () {
  const models = yield* Models
  const toolServers = yield* ToolServers
  const { watched } = yield* ProviderWaits
  const recordingsOf = yield* makeRecordings

  /** What one attempt finds, kept for its time. */
  return Effect.fnUntraced(function* (
    run: ClaimedRun,
    { definition }: AgentVersion,
    principal: RunPrincipal
  ): Effect.fn.Return<EquipmentOf> {
    const isConversation = run.trigger.type === "context"
    const known = new Map<FlowStep | Workflow | undefined, Equipment>()

    const patternsOf = (step: FlowStep | undefined) => {
      if (!step?.tools) return definition.tools
      return isConversation ? commonTools(definition.tools, step.tools) : step.tools
    }

    return Effect.fnUntraced(function* (flow, name, settings) {
      const step = flow?.steps.find((each) => each.name === name)
      const found = known.get(step ?? flow)
      if (found && found.settings === settings) return found
      const isToolless = toolChoiceOf(settings) === "none"
      const model = yield* models.resolve({
        agentName: definition.name,
        model: step?.model ?? definition.model,
        readRecord: recordingsOf(run.projectId, run.contextName),
        ...(settings ? { settings: isConversation && step?.model ? withoutModel(settings) : settings } : {})
      })
      const connected =
        (found && isToolless === (toolChoiceOf(found.settings) === "none") ? found.tools : undefined) ??
        (yield* toolServers.connect(principal, isToolless ? [] : patternsOf(step), {
          isLoop: flow?.flowType === "loop",
          maySpawn: !isToolless && definition.subAgents.length > 0,
          maySuggest: definition.executionMode !== "execute"
        }))
      const guard = settings && (yield* guardOf(models, definition.name, settings))
      const defined = settings?.tools ?? []
      // A step that lists its tools has those and no others, of the context's client tools too.
      const listed = step?.tools
      const usable = listed
        ? defined.filter((tool) => !isClientTool(tool) || allows(listed, `${clientServer}.${tool.name}`))
        : defined
      const tools = isToolless ? connected : connected.defining(usable)
      const equipment: Equipment = {
        settings,
        model: watched(run, model),
        guard: guard && watched(run, guard),
        tools
      }
      known.set(step ?? flow, equipment)
      return equipment
    })
  })
})

const toolChoiceOf = (settings: ContextConfig | undefined) =>
  Option.getOrUndefined(settings?.primary ?? Option.none())?.toolChoice

/** A workflow's step that names a model is asked of that one, whatever the conversation asks else. */
const withoutModel = (settings: ContextConfig): ContextConfig => ({ ...settings, primary: Option.none() })
