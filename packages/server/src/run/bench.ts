/**
 * What an attempt works with, and what should happen now.
 *
 * Flow: graph → outbox → dispatch → **run** → tool → task
 *
 * The decider is pure; here it is told the time, the limits and the flow of the
 * run at hand. Nothing is written and nobody is asked.
 */
import type { ReducedContext } from "@tropism/domain/context"
import type { Workflow } from "@tropism/domain/context-config"
import { workflowOf } from "@tropism/domain/context-flow"
import { decide } from "@tropism/domain/decide"
import { nextPlace, planOf } from "@tropism/domain/flow"
import { areNotesDue } from "@tropism/domain/notes-due"
import { Clock, Effect, Option } from "effect"
import type { AgentVersion } from "../agent/agents.ts"
import { runLimits } from "../limits.ts"
import type { ClaimedRun } from "./claimed-run.ts"
import type { EquipmentOf } from "./equipment.ts"
import type { Occasion } from "./opening.ts"

/** What an attempt works with, found once at its beginning. */
export interface Bench {
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
  { agent: { definition }, isConversation }: Pick<Bench, "agent" | "isConversation">,
  context: ReducedContext
): Workflow | undefined => {
  if (isConversation) return workflowOf(context)
  return definition.flowType === "single" ? undefined : definition
}

/** What the present step of the flow asks and offers, or the first before it has begun, as the context has set it. */
export const equipmentNow = (bench: Bench, context: ReducedContext) => {
  const flow = flowOf(bench, context)
  const isBegun = Option.isSome(context.flow) && !(bench.isConversation && context.isAsked)
  const step = isBegun ? context.flow.value.step : flow?.steps[0]?.name
  return bench.equipmentOf(flow, step, context.config)
}

/** Whether nothing follows the turn that is open. */
export const isLastTurn = (bench: Bench, context: ReducedContext): boolean => {
  const flow = flowOf(bench, context)
  const plan = flow && planOf(flow)
  return (plan === undefined || nextPlace(plan, context.flow) === undefined) && !areNotesDue(context)
}

/** Ends when the run's time is up; never where it has no deadline. */
export const timeUp = Effect.fnUntraced(function* ({ deadlineMs }: Pick<Bench, "deadlineMs">) {
  if (deadlineMs === null) return yield* Effect.never
  // A timer may ring a moment early, and the decider has to agree that the time is up.
  while (true) {
    const leftMs = deadlineMs - (yield* Clock.currentTimeMillis)
    if (leftMs <= 0) return
    yield* Effect.sleep(leftMs)
  }
})

/** Whether the agent's definition, or what was set where it works, says how many tokens an answer may have. */
const isOutputLimited = ({ agent }: Bench, { config }: ReducedContext): boolean => {
  const set = Option.getOrUndefined(config.primary)?.maxOutputTokens
  return (set ?? agent.definition.model?.maxOutputTokens ?? null) !== null
}

/** What the log and the clock say should happen now. */
export const decideNow = Effect.fnUntraced(function* (
  bench: Bench,
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
  { deadlineMs, wasStopped }: Pick<Bench, "deadlineMs" | "wasStopped">,
  { run }: ReducedContext
): number | null => {
  const stop = Option.getOrUndefined(run.softStop)
  if (stop === undefined) return null
  if (deadlineMs === null) return null
  const stoppedMs = stop.reason === "timeout" && !wasStopped ? new Date(stop.at).getTime() : deadlineMs
  return Math.min(stoppedMs, deadlineMs + runLimits.lateStopMs) + runLimits.graceMs
}
