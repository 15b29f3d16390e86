/**
 * Loads what an attempt works with, and decides its next step.
 *
 * The decider is pure; this module passes it the time, the limits and the run's workflow. It writes nothing.
 */
import type { ReducedContext } from "@tropism/domain/context"
import { type Workflow, type ContextConfig, isClientTool } from "@tropism/domain/context-config"
import type { ContextName, RequestedToolCall } from "@tropism/domain/context-event"
import { workflowOf } from "@tropism/domain/context-flow"
import { decide } from "@tropism/domain/decide"
import { nextPlace, planOf, type FlowStep } from "@tropism/domain/flow"
import { type ProjectId, RunId } from "@tropism/domain/ids"
import { areNotesDue } from "@tropism/domain/notes-due"
import { allows, clientServer, commonTools } from "@tropism/domain/tool-pattern"
import { Clock, Effect, Option, Schema } from "effect"
import { SqlClient } from "effect/sql"
import type { AgentVersion } from "../agents/agents.ts"
import { Database } from "../database/database.ts"
import { runLimits } from "../limits.ts"
import type { ModelUnavailable, ResolvedModel, ReadRecord } from "../models/model-request.ts"
import { Models } from "../models/models.ts"
import type { RunPrincipal } from "../tools/principal.ts"
import { type ConnectedTools, ToolServers } from "../tools/offered-tools.ts"
import { guardOf } from "./guard.ts"
import type { Occasion } from "./opening.ts"
import { ProviderWaits } from "./provider-waits.ts"
import type { ClaimedRun } from "./run-types.ts"

/** What an attempt works with, loaded once when it begins. */
export interface AttemptContext {
  readonly run: ClaimedRun
  readonly agent: AgentVersion
  readonly occasion: Occasion
  readonly maxSteps: number | null
  /** Whether people write here: their messages are collected for a short time before the run answers. */
  readonly isConversation: boolean
  /** The run's deadline on this process's clock, in milliseconds; null when there is none. */
  readonly deadlineMs: number | null
  /** The turn and session that the previous attempt left open when it died. */
  readonly orphanedTurn: number | undefined
  /** The run was asked to stop before this attempt began, so its deadline gives the time of the stop. */
  readonly wasStopped: boolean
  readonly mayRepeat: (tool: string) => boolean
  readonly equipmentOf: EquipmentOf
}

/** Returns the workflow that a run follows now: its agent's, or in a conversation the context's; undefined for a single prompt. */
export const flowOf = (
  { agent: { definition }, isConversation }: Pick<AttemptContext, "agent" | "isConversation">,
  context: ReducedContext
): Workflow | undefined => {
  if (isConversation) return workflowOf(context)
  return definition.flowType === "single" ? undefined : definition
}

/** Finds the model and tools of the current workflow step, or of the first before it has begun, with the context's settings applied. */
export const equipmentNow = (bench: AttemptContext, context: ReducedContext) => {
  const flow = flowOf(bench, context)
  const isBegun = Option.isSome(context.flow) && !(bench.isConversation && context.isAsked)
  const step = isBegun ? context.flow.value.step : flow?.steps[0]?.name
  return bench.equipmentOf(flow, step, context.config)
}

/** Whether the open turn is the last of the run. */
export const isLastTurn = (bench: AttemptContext, context: ReducedContext): boolean => {
  const flow = flowOf(bench, context)
  const plan = flow && planOf(flow)
  return (plan === undefined || nextPlace(plan, context.flow) === undefined) && !areNotesDue(context)
}

/** Returns when the run's deadline has passed; never when there is none. */
export const timeUp = Effect.fnUntraced(function* ({ deadlineMs }: Pick<AttemptContext, "deadlineMs">) {
  if (deadlineMs === null) return yield* Effect.never
  // A timer may fire slightly early, and the decider must agree that the time is up.
  while (true) {
    const leftMs = deadlineMs - (yield* Clock.currentTimeMillis)
    if (leftMs <= 0) return
    yield* Effect.sleep(leftMs)
  }
})

/** Whether the agent's definition or the context's settings limit the tokens of an answer. */
const isOutputLimited = ({ agent }: AttemptContext, { config }: ReducedContext): boolean => {
  const set = Option.getOrUndefined(config.primary)?.maxOutputTokens
  return (set ?? agent.definition.model?.maxOutputTokens ?? null) !== null
}

/** Returns the decision for the current log and time. */
export const decideNow = Effect.fnUntraced(function* (
  bench: AttemptContext,
  context: ReducedContext,
  ownTurnNumber: number | undefined
) {
  const { deadlineMs, isConversation, maxSteps, mayRepeat, run } = bench
  const flow = isConversation ? undefined : planOf(bench.agent.definition)
  const nowMs = yield* Clock.currentTimeMillis
  const isTimeUp = deadlineMs !== null && nowMs >= deadlineMs
  const graceEnd = graceEndOf(bench, context)
  const isGraceOver = graceEnd !== null && nowMs >= graceEnd
  const debounce = isConversation
    ? { nowMs, quietMs: runLimits.debounceQuietMs, maxWaitMs: runLimits.debounceMaxMs }
    : undefined
  return decide({
    context,
    runId: run.id,
    ownTurnNumber,
    maxSteps,
    debounce,
    flow,
    mayRepeat,
    isOutputLimited: isOutputLimited(bench, context),
    isTimeUp,
    isGraceOver
  })
})

/**
 * Returns when the last request of a stopped run must end; null when it has no limit.
 *
 * **Details** The grace period starts at the stop, so a stop that arrives late shortens it. The clock of the server that wrote the stop may
 * differ from this one's. A stop that was already there when the attempt began is therefore judged by its deadline, which the stop moved
 * and which the database's clock measures.
 */
export const graceEndOf = (
  { deadlineMs, wasStopped }: Pick<AttemptContext, "deadlineMs" | "wasStopped">,
  { run }: ReducedContext
): number | null => {
  const stop = Option.getOrUndefined(run.softStop)
  if (stop === undefined) return null
  if (deadlineMs === null) return null
  const stoppedMs = stop.reason === "timeout" && !wasStopped ? new Date(stop.at).getTime() : deadlineMs
  return Math.min(stoppedMs, deadlineMs + runLimits.lateStopMs) + runLimits.graceMs
}

// Finds the model and the tools that a run uses at each step.
//
// Tools are connected once per step and stay connected until the attempt ends; the model is resolved again when the settings change. A step
// that an event started can do no more than its agent: it has only the tools that are in both lists.

/** The model and the tools that a request uses. */
export interface ModelAndTools {
  /** The settings with which the model was resolved. */
  readonly settings: ContextConfig | undefined
  readonly model: ResolvedModel
  /** The model that judges input; absent without a guard. */
  readonly guard: ResolvedModel | undefined
  readonly tools: ConnectedTools
}

/**
 * Finds the model and tools of a workflow step; the agent's own when there is no workflow or the step names none. The context's settings
 * take precedence where given.
 */
type EquipmentOf = (
  flow: Workflow | undefined,
  step: string | undefined,
  settings?: ContextConfig
) => Effect.Effect<ModelAndTools, ModelUnavailable>

export const makeModelAndTools = Effect.gen(function* () {
  const models = yield* Models
  const toolServers = yield* ToolServers
  const { watched } = yield* ProviderWaits
  const recordingsOf = yield* makeRecordings

  /** Caches the models and tools of one attempt. */
  return Effect.fnUntraced(function* (
    run: ClaimedRun,
    { definition }: AgentVersion,
    principal: RunPrincipal
  ): Effect.fn.Return<EquipmentOf> {
    const isConversation = run.trigger.type === "context"
    const known = new Map<FlowStep | Workflow | undefined, ModelAndTools>()

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
      // A step that lists its tools has only those, of the context's client tools too.
      const listed = step?.tools
      const usable = listed
        ? defined.filter((tool) => !isClientTool(tool) || allows(listed, `${clientServer}.${tool.name}`))
        : defined
      const tools = isToolless ? connected : connected.defining(usable)
      const equipment: ModelAndTools = {
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

/** A workflow step that names a model uses it even when the conversation selects another. */
const withoutModel = (settings: ContextConfig): ContextConfig => ({ ...settings, primary: Option.none() })

// Reads the answers of an earlier run, for a run that replays them.
//
// The log is the only record. Answers are read one at a time, so a long record needs little memory. A run can be replayed only within its
// project, and one in a person's own context only by that person's runs.

interface AnswerRow {
  readonly text: string
  readonly toolCalls: ReadonlyArray<typeof RequestedToolCall.Type>
}

const isRunId = Schema.is(RunId)

/** Makes the reader of a project's recordings. */
export const makeRecordings = Effect.gen(function* () {
  const sql = yield* SqlClient.SqlClient
  const database = yield* Database

  /** For a run in the context `asking`; null stands for no particular context. */
  return (projectId: ProjectId, asking: ContextName | null): ReadRecord =>
    Effect.fn("recordings.read")(function* (runId, step) {
      if (!isRunId(runId)) return null
      const [row] = yield* database.ask(
        projectId,
        sql<AnswerRow>`
          select event.payload->>'content' as text, event.payload->'toolCalls' as tool_calls, event.payload->>'finishReason' as finish_reason
          from kb.agent_runs run
          join kb.context_events event on event.project_id = run.project_id and event.context_name = run.context_name
          join kb.contexts origin on origin.project_id = run.project_id and origin.name = run.context_name
          where run.id = ${runId}
            and (origin.owner is null or origin.owner = (select owner from kb.contexts where project_id = ${projectId} and name = ${asking}))
            and event.type = 'AssistantMessageEvent' and event.payload->>'runId' = run.id::text
          order by event.number limit 1 offset ${step}`
      )
      return row ?? null
    })
})
