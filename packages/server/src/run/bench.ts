/**
 * What an attempt works with, and what should happen now.
 *
 * Flow: graph → outbox → dispatch → **run** → tool → task
 *
 * The decider is pure; here it is told the time, the limits and the flow of the
 * run at hand. Nothing is written and nobody is asked.
 */
import type { ReducedContext } from "@tropism/domain/context"
import type { ContextConfig } from "@tropism/domain/context-config"
import { decide } from "@tropism/domain/decide"
import type { FlowPlan } from "@tropism/domain/flow"
import { Clock, Effect, Option } from "effect"
import type { AgentVersion } from "../agent/agents.ts"
import { runLimits } from "../limits.ts"
import type { ModelUnavailable, ResolvedModel } from "../model/model-request.ts"
import type { ConnectedTools } from "../tool/tool-servers.ts"
import type { ClaimedRun } from "./claimed-run.ts"
import type { Occasion } from "./opening.ts"

/** What an attempt works with, found once at its beginning. */
export interface Bench {
  readonly run: ClaimedRun
  readonly agent: AgentVersion
  readonly occasion: Occasion
  readonly flow: FlowPlan | undefined
  readonly maxSteps: number | null
  /** Whether people speak here: their messages are gathered for a moment. */
  readonly isConversation: boolean
  /** When the run has used its time, by this program's clock, in milliseconds; null is never. */
  readonly deadlineMs: number | null
  /** It had been asked to stop before this attempt began, so its deadline says when that was. */
  readonly wasStopped: boolean
  readonly mayRepeat: (tool: string) => boolean
  /** What a step asks and offers; the agent's own where there is no step, or the step has none. What was set comes first where it is given. */
  readonly equipmentOf: (
    step: string | undefined,
    settings?: ContextConfig
  ) => Effect.Effect<Equipment, ModelUnavailable>
  /** What the present step of the flow asks and offers, or the first before it has begun, as the context has set it. */
  readonly equipment: (context: ReducedContext) => Effect.Effect<Equipment, ModelUnavailable>
}

/** The model that is asked and the tools that it is shown. */
export interface Equipment {
  /** What was set when the model was found. */
  readonly settings: ContextConfig | undefined
  readonly model: ResolvedModel
  /** Who judges what the model reads; absent where nobody does. */
  readonly guard: ResolvedModel | undefined
  readonly tools: ConnectedTools
}

/** What the log and the clock say should happen now. */
export const decideNow = Effect.fnUntraced(function* (
  bench: Bench,
  context: ReducedContext,
  ownTurnNumber: number | undefined
) {
  const { deadlineMs, flow, isConversation, maxSteps, mayRepeat, run } = bench
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
    isTimeUp,
    isGraceOver
  })
})

/**
 * Until when the last request of a stopped run may take; null is as long as it takes.
 *
 * **Details** The clock of the server that wrote the stop may not be this one's:
 * what an attempt finds stopped is judged by its deadline, which the stop has
 * moved and which the database counts.
 */
export const graceEndOf = (
  { deadlineMs, wasStopped }: Pick<Bench, "deadlineMs" | "wasStopped">,
  { run }: ReducedContext
): number | null => {
  const stop = Option.getOrUndefined(run.softStop)
  if (stop === undefined) return null
  const from = stop.reason === "timeout" && !wasStopped ? new Date(stop.at).getTime() : deadlineMs
  return from === null ? null : from + runLimits.graceMs
}
