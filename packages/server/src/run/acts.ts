/**
 * What an actor does when it has decided: one act, one transaction.
 *
 * Flow: graph → outbox → dispatch → **run** → tool → task
 *
 * Every act appends to the log and answers the state after it; an act that ends
 * the run answers nothing. All writes carry the attempt's token. Nothing is
 * decided here, except that a run in which somebody spoke meanwhile goes on, and
 * that an answer after which nothing is left to do is the run's end.
 */
import { costMicrosOf } from "@tropism/domain/chain"
import { fold, type ReducedContext } from "@tropism/domain/context"
import type { NewEvent, SoftStopReason } from "@tropism/domain/context-event"
import { decide, type Decision, type RefusalReason } from "@tropism/domain/decide"
import { type FlowPlace, type FlowPlan, nextPlace } from "@tropism/domain/flow"
import type { ModelConfig } from "@tropism/domain/model-config"
import type { LoopWarning } from "@tropism/domain/repetition"
import { Clock, Effect, Option } from "effect"
import type { AgentVersion } from "../agent/agents.ts"
import { endOf } from "../agent/appending.ts"
import { Contexts } from "../agent/contexts.ts"
import { CrashPoint } from "../crash-point.ts"
import type { ProjectTransaction } from "../database/database.ts"
import { runLimits } from "../limits.ts"
import type { ModelUnavailable, ResolvedModel } from "../model/model-request.ts"
import type { ConnectedTools } from "../tool/tool-servers.ts"
import { type Answer, askModel } from "./answer.ts"
import type { ClaimedRun } from "./claimed-run.ts"
import { type Closing, closingEvents } from "./closing.ts"
import type { RunNotInState } from "./holding.ts"
import { type Occasion, stepStart } from "./opening.ts"
import { Runs } from "./runs.ts"
import { makeWriting } from "./writing.ts"

/** What an attempt works with, found once at its beginning. */
export interface Bench {
  readonly run: ClaimedRun
  readonly agent: AgentVersion
  readonly occasion: Occasion
  readonly flow: FlowPlan | undefined
  readonly maxSteps: number | null
  /** When the run has used its time, by this program's clock, in milliseconds; null is never. */
  readonly deadlineMs: number | null
  readonly mayRepeat: (tool: string) => boolean
  /** What the present step of the flow asks and offers; the agent's own where there is no flow. */
  readonly equipment: (context: ReducedContext) => Effect.Effect<Equipment, ModelUnavailable>
}

/** The model that is asked and the tools that it is shown. */
export interface Equipment {
  readonly config: ModelConfig | null
  readonly model: ResolvedModel
  readonly tools: ConnectedTools
}

/** What the log and the clock say should happen now. */
export const decideNow = Effect.fnUntraced(function* (
  { deadlineMs, flow, maxSteps, mayRepeat, run }: Bench,
  context: ReducedContext,
  ownTurnNumber: number | undefined
) {
  const now = yield* Clock.currentTimeMillis
  const isTimeUp = deadlineMs !== null && now >= deadlineMs
  const graceEnd = graceEndOf(context, deadlineMs)
  const isGraceOver = graceEnd !== null && now >= graceEnd
  return decide({ context, runId: run.id, ownTurnNumber, maxSteps, flow, mayRepeat, isTimeUp, isGraceOver })
})

/** Until when the last request of a stopped run may take; null is as long as it takes. */
const graceEndOf = ({ run }: ReducedContext, deadlineMs: number | null): number | null => {
  const stop = Option.getOrUndefined(run.softStop)
  if (stop === undefined) return null
  const from = stop.reason === "timeout" ? new Date(stop.at).getTime() : deadlineMs
  return from === null ? null : from + runLimits.graceMs
}

/** The acts, one for each decision. */
export const makeActs = Effect.gen(function* () {
  const runs = yield* Runs
  const contexts = yield* Contexts
  const { advance, append, appendAndEnd, catchUp } = yield* makeWriting

  const requestModel = Effect.fn("Actor.requestModel")(function* (
    bench: Bench,
    context: ReducedContext,
    withTools: boolean
  ) {
    const { deadlineMs, run } = bench
    const { config, model, tools } = yield* bench.equipment(context)
    const spent = yield* runs.mayAsk(run)
    if (spent) {
      const end = runs.pause(run, "budget", summaryOf(context.lastText), spent.reason)
      return yield* finish(run, context, { type: "interrupted", reason: "budget" }, end)
    }
    yield* CrashPoint.hit("run.beforeModel")
    let partialText = ""
    const asked = askModel(
      model,
      run.projectId,
      run.contextName,
      context,
      withTools ? tools.offered : [],
      (text) => {
        partialText = text
      }
    ).pipe(Effect.provideService(Contexts, contexts))
    const isStopped = Option.isSome(context.run.softStop) && context.run.id === run.id
    const endMs = isStopped ? graceEndOf(context, deadlineMs) : deadlineMs
    const answer = yield* within(asked, endMs)
    yield* CrashPoint.hit("run.afterModel")
    if (Option.isSome(answer)) return yield* keep(bench, config, context, answer.value)
    return isStopped
      ? yield* pause(run, context, "timeout", partialText)
      : yield* softStop(run, context, "timeout", partialText)
  })

  /** Aborts what is not through by an instant. */
  const within = <A, E, R>(effect: Effect.Effect<A, E, R>, endMs: number | null) =>
    endMs === null
      ? Effect.map(effect, Option.some)
      : Effect.flatMap(Clock.currentTimeMillis, (now) =>
          Effect.timeoutOption(effect, Math.max(0, endMs - now))
        )

  const softStop = (run: ClaimedRun, context: ReducedContext, reason: SoftStopReason, partialText: string) =>
    append(run, context, [
      {
        type: "SoftStopEvent",
        reason,
        runId: run.id,
        content: softStopSentences[reason],
        ...(partialText === "" ? {} : { partialText })
      }
    ])

  const pause = (
    run: ClaimedRun,
    context: ReducedContext,
    reason: "stepLimit" | "timeout" | "budget",
    partialText = ""
  ) => {
    const end = runs.pause(run, reason, summaryOf(partialText === "" ? context.lastText : partialText))
    return finish(run, context, { type: "interrupted", reason, partialText }, end)
  }

  /** Keeps an answer and counts its step; one that asks for no tool ends the run in the same transaction. */
  const keep = Effect.fnUntraced(function* (
    bench: Bench,
    config: ModelConfig | null,
    context: ReducedContext,
    answer: Answer
  ) {
    const { run } = bench
    const said: NewEvent = {
      type: "AssistantMessageEvent",
      content: answer.text,
      toolCalls: answer.toolCalls,
      runId: run.id,
      model: answer.model,
      usage: answer.usage
    }
    const counting = runs.counting(
      run,
      answer.usage,
      answer.model,
      costMicrosOf(config, answer.model, answer.usage)
    )
    const { events } = yield* contexts.plan(run.projectId, run.contextName, endOf(context), [said])
    const after = fold(events, context)
    const next = yield* decideNow(bench, after, context.currentTurnNumber)
    if (next.type === "completeTurn" && !after.isTurnDue && isLastTurn(bench, after)) {
      yield* CrashPoint.hit("run.beforeComplete")
      const closing: Closing = { type: "completed", durationMs: yield* durationMs(after) }
      const end = runs.complete(run, summaryOf(next.text))
      const isOver = yield* appendAndEnd(
        run,
        context,
        [said, ...closingEvents(after, closing)],
        end,
        counting
      )
      yield* CrashPoint.hit("run.afterComplete")
      if (isOver) return undefined
    }
    const kept = yield* append(run, context, [said], counting)
    yield* CrashPoint.hit("run.afterStep")
    return kept
  })

  /** Whether nothing follows the turn that is open. */
  const isLastTurn = ({ flow }: Bench, context: ReducedContext): boolean =>
    flow === undefined || nextPlace(flow, context.flow) === undefined

  const refuseTool = (
    run: ClaimedRun,
    context: ReducedContext,
    { call, reason }: Extract<Decision, { readonly type: "refuseTool" }>
  ) =>
    append(run, context, [
      {
        type: "ToolCallFailedEvent",
        callId: call.id,
        tool: call.name,
        error: { error: refusalSentences[reason], reason }
      }
    ])

  const durationMs = Effect.fnUntraced(function* (context: ReducedContext) {
    const now = yield* Clock.currentTimeMillis
    return Option.match(context.agentTurnStartedAt, {
      onNone: () => 0,
      onSome: (start) => Math.max(0, now - new Date(start).getTime())
    })
  })

  /** Ends the run, unless somebody spoke since the log was read: then the answer is how it goes on. */
  const finish = Effect.fn("Actor.finish")(function* (
    run: ClaimedRun,
    context: ReducedContext,
    closing: Closing,
    end: Effect.Effect<void, RunNotInState, ProjectTransaction>
  ) {
    yield* CrashPoint.hit("run.beforeComplete")
    const isOver = yield* appendAndEnd(run, context, closingEvents(context, closing), end)
    yield* CrashPoint.hit("run.afterComplete")
    return isOver ? undefined : yield* catchUp(run, context)
  })

  const startTurn = Effect.fnUntraced(function* (
    run: ClaimedRun,
    context: ReducedContext,
    turnNumber: number
  ) {
    const started = yield* append(run, context, [{ type: "AgentTurnStartedEvent", turnNumber }])
    yield* CrashPoint.hit("run.afterTurnStarted")
    return started
  })

  /** Ends a turn and not the run: somebody spoke meanwhile, and that is for the next turn. */
  const completeTurn = (run: ClaimedRun, context: ReducedContext) =>
    Effect.flatMap(durationMs(context), (spent) =>
      append(run, context, [
        {
          type: "AgentTurnCompletedEvent",
          turnNumber: context.currentTurnNumber,
          durationMs: spent
        }
      ])
    )

  /** Lets the run rest until others bring the outcomes that it waits for, unless one has come since the log was read. */
  const wait = Effect.fnUntraced(function* (
    run: ClaimedRun,
    context: ReducedContext,
    what: "run" | "person"
  ) {
    const end = runs.wait(run, what === "run" ? "subAgents" : "question")
    const isOver = yield* appendAndEnd(run, context, [], end)
    yield* CrashPoint.hit("run.afterWait")
    return isOver ? undefined : yield* catchUp(run, context)
  })

  const fail = (run: ClaimedRun, context: ReducedContext, error: string) =>
    finish(run, context, { type: "failed", error }, runs.fail(run, error))

  const startStep = Effect.fnUntraced(function* (
    { agent, occasion, run }: Bench,
    context: ReducedContext,
    place: FlowPlace
  ) {
    const begun = yield* stepStart(agent, occasion, context.flow, place)
    return yield* append(run, context, [begun])
  })

  /** Does the one thing decided; answers the state after it, or nothing when the run is over. */
  const act = (bench: Bench, context: ReducedContext, decision: Decision) => {
    const { run } = bench
    switch (decision.type) {
      case "startTurn":
        return startTurn(run, context, decision.turnNumber)
      case "startStep":
        return startStep(bench, context, decision.place)
      case "interruptTurn":
        return append(run, context, [
          { type: "AgentTurnInterruptedEvent", turnNumber: decision.turnNumber, reason: "crash" }
        ])
      case "requestModel":
        return requestModel(bench, context, decision.withTools)
      case "callTool":
        return Effect.flatMap(bench.equipment(context), ({ tools }) =>
          Effect.flatMap(tools.call(decision.call, endOf(context)), ({ appended }) =>
            advance(run, context, appended)
          )
        )
      case "refuseTool":
        return refuseTool(run, context, decision)
      case "softStop":
        return softStop(run, context, decision.reason, "")
      case "warn":
        return append(run, context, [
          { type: "LoopWarningEvent", reason: decision.reason, content: warningSentences[decision.reason] }
        ])
      case "wait":
        return wait(run, context, decision.for)
      case "pause":
        return pause(run, context, decision.reason)
      case "fail":
        return fail(
          run,
          context,
          `Doom loop: the agent asked for ${decision.call.name} with the same arguments ${decision.times} times in a row and was stopped`
        )
      case "completeTurn":
      case "finish": {
        if (context.isTurnDue || (decision.type === "completeTurn" && !isLastTurn(bench, context)))
          return completeTurn(run, context)
        const end = runs.complete(run, summaryOf(decision.text))
        return Effect.flatMap(durationMs(context), (spent) =>
          finish(run, context, { type: "completed", durationMs: spent }, end)
        )
      }
    }
  }

  return { act }
})

const softStopSentences: Readonly<Record<SoftStopReason, string>> = {
  stepLimit:
    "You have used all the steps of this run. Call no tool any more: say in a few sentences what you have done and what is left.",
  timeout:
    "Time's up. Call no tool any more: summarize in a few sentences what you have done and what is left."
}

const refusalSentences: Readonly<Record<RefusalReason, string>> = {
  softStop: "The run was asked to stop: no tool is called any more",
  abandoned: "The turn that asked for this call has ended: it was not made",
  doomLoop:
    "You have called this tool with the same arguments several times in a row, so it was not called again. The answer would be the same: try a different approach, or say why you cannot go on."
}

const warningSentences: Readonly<Record<LoopWarning, string>> = {
  cycle:
    "You are repeating the same few tool calls in a circle. They will answer the same again: try a different approach, or say why you cannot go on.",
  errorStreak:
    "Your last tool calls all failed with the same error. Read it, and try a different approach, or say why you cannot go on."
}

const summaryOf = (text: string): string => text.slice(0, runLimits.summaryMaxChars)
