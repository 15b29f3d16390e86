/**
 * What an attempt works with, and what should happen now.
 *
 * The decider is pure; here it is told the time, the limits and the flow of the
 * run at hand. Nothing is written and nobody is asked.
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
import { type ConnectedTools, ToolServers } from "../tools/tool-servers.ts"
import { guardOf } from "./guard.ts"
import type { Occasion } from "./opening.ts"
import { ProviderWaits } from "./provider-waits.ts"
import type { ClaimedRun } from "./run-types.ts"

/** What an attempt works with, found once at its beginning. */
export interface AttemptContext {
  readonly run: ClaimedRun
  readonly agent: AgentVersion
  readonly occasion: Occasion
  readonly maxSteps: number | null
  /** Whether people speak here: their messages are gathered for a moment. */
  readonly isConversation: boolean
  /** When the run has used its time, by this program's clock, in milliseconds; null is never. */
  readonly deadlineMs: number | null
  /** The turn that the attempt before this one left open when it died, with its session. */
  readonly orphanedTurn: number | undefined
  /** It had been asked to stop before this attempt began, so its deadline says when that was. */
  readonly wasStopped: boolean
  readonly mayRepeat: (tool: string) => boolean
  readonly equipmentOf: EquipmentOf
}

/** The flow that a run goes through now, its agent's or in a conversation the context's; nothing where there is one prompt. */
export const flowOf = (
  { agent: { definition }, isConversation }: Pick<AttemptContext, "agent" | "isConversation">,
  context: ReducedContext
): Workflow | undefined => {
  if (isConversation) return workflowOf(context)
  return definition.flowType === "single" ? undefined : definition
}

/** What the present step of the flow asks and offers, or the first before it has begun, as the context has set it. */
export const equipmentNow = (bench: AttemptContext, context: ReducedContext) => {
  const flow = flowOf(bench, context)
  const isBegun = Option.isSome(context.flow) && !(bench.isConversation && context.isAsked)
  const step = isBegun ? context.flow.value.step : flow?.steps[0]?.name
  return bench.equipmentOf(flow, step, context.config)
}

/** Whether nothing follows the turn that is open. */
export const isLastTurn = (bench: AttemptContext, context: ReducedContext): boolean => {
  const flow = flowOf(bench, context)
  const plan = flow && planOf(flow)
  return (plan === undefined || nextPlace(plan, context.flow) === undefined) && !areNotesDue(context)
}

/** Ends when the run's time is up; never where it has no deadline. */
export const timeUp = Effect.fnUntraced(function* ({ deadlineMs }: Pick<AttemptContext, "deadlineMs">) {
  if (deadlineMs === null) return yield* Effect.never
  // A timer may ring a moment early, and the decider has to agree that the time is up.
  while (true) {
    const leftMs = deadlineMs - (yield* Clock.currentTimeMillis)
    if (leftMs <= 0) return
    yield* Effect.sleep(leftMs)
  }
})

/** Whether the agent's definition, or what was set where it works, says how many tokens an answer may have. */
const isOutputLimited = ({ agent }: AttemptContext, { config }: ReducedContext): boolean => {
  const set = Option.getOrUndefined(config.primary)?.maxOutputTokens
  return (set ?? agent.definition.model?.maxOutputTokens ?? null) !== null
}

/** What the log and the clock say should happen now. */
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
 * Until when the last request of a stopped run may take; null is as long as it takes.
 *
 * **Details** The grace counts from the stop, and a stop that came late takes from it. The clock of the server that wrote the
 * stop may not be this one's: what an attempt finds stopped is judged by its deadline, which the stop has moved and which
 * the database counts.
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

// What a run works with at each step: the model that is asked, and the tools that it is shown.
//
// Tools are connected once for each step, until the attempt ends; the model is
// found again when something was set. A step that an event brought can do no
// more than the agent: its tools are those of both lists.

/** The model that is asked and the tools that it is shown. */
export interface ModelAndTools {
  /** What was set when the model was found. */
  readonly settings: ContextConfig | undefined
  readonly model: ResolvedModel
  /** Who judges what the model reads; absent where nobody does. */
  readonly guard: ResolvedModel | undefined
  readonly tools: ConnectedTools
}

/** What a step of a flow asks and offers; the agent's own where there is no flow, or the step has none. What was set comes first where it is given. */
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

  /** What one attempt finds, kept for its time. */
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
      // A step that lists its tools has those and no others, of the context's client tools too.
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

/** A workflow's step that names a model is asked of that one, whatever the conversation asks else. */
const withoutModel = (settings: ContextConfig): ContextConfig => ({ ...settings, primary: Option.none() })

// What the model of an earlier run answered, for a run that is answered the same.
//
// The log is the record: nothing else is kept for it. One answer is read at a
// time, so a long record costs no memory; a run of another project does not
// exist here, and one in somebody's own context only for runs in theirs.

interface AnswerRow {
  readonly text: string
  readonly toolCalls: ReadonlyArray<typeof RequestedToolCall.Type>
}

const isRunId = Schema.is(RunId)

/** Reads the records of a project. */
export const makeRecordings = Effect.gen(function* () {
  const sql = yield* SqlClient.SqlClient
  const database = yield* Database

  /** For a run that works in a context, or for nobody in particular. */
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
