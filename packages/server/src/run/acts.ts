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
import type { NewEvent } from "@tropism/domain/context-event"
import { fold, type ReducedContext } from "@tropism/domain/context"
import { decide, type Decision } from "@tropism/domain/decide"
import { Clock, Effect, Option } from "effect"
import type { AgentVersion } from "../agent/agents.ts"
import { endOf } from "../agent/appending.ts"
import { Contexts } from "../agent/contexts.ts"
import { CrashPoint } from "../crash-point.ts"
import type { ProjectTransaction } from "../database/database.ts"
import { runLimits } from "../limits.ts"
import type { ResolvedModel } from "../model/model-request.ts"
import type { ConnectedTools } from "../tool/tool-servers.ts"
import { type Answer, askModel } from "./answer.ts"
import type { ClaimedRun } from "./claimed-run.ts"
import { type Closing, closingEvents } from "./closing.ts"
import type { RunNotInState } from "./holding.ts"
import { Runs } from "./runs.ts"
import { makeWriting } from "./writing.ts"

/** What an attempt works with, found once at its beginning. */
export interface Bench {
  readonly run: ClaimedRun
  readonly agent: AgentVersion
  readonly model: ResolvedModel
  readonly tools: ConnectedTools
  readonly maxSteps: number
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
    const { run, model, tools } = bench
    const spent = yield* runs.mayAsk(run)
    if (spent) {
      const end = runs.pause(run, "budget", summaryOf(context.lastText), spent.reason)
      return yield* finish(run, context, { type: "interrupted", reason: "budget" }, end)
    }
    yield* CrashPoint.hit("run.beforeModel")
    const answer = yield* askModel(
      model,
      run.projectId,
      run.contextName,
      context,
      withTools ? tools.offered : []
    ).pipe(Effect.provideService(Contexts, contexts))
    yield* CrashPoint.hit("run.afterModel")
    return yield* keep(bench, context, answer)
  })

  /** Keeps an answer and counts its step; one that asks for no tool ends the run in the same transaction. */
  const keep = Effect.fnUntraced(function* (
    { run, agent, maxSteps }: Bench,
    context: ReducedContext,
    answer: Answer
  ) {
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
      costMicrosOf(agent.definition.model, answer.model, answer.usage)
    )
    const { events } = yield* contexts.plan(run.projectId, run.contextName, endOf(context), [said])
    const after = fold(events, context)
    const next = decide({ context: after, runId: run.id, ownTurnNumber: context.currentTurnNumber, maxSteps })
    if (next.type === "completeTurn" && !after.isTurnDue) {
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

  /** Does the one thing decided; answers the state after it, or nothing when the run is over. */
  const act = (bench: Bench, context: ReducedContext, decision: Decision) => {
    const { run, tools } = bench
    switch (decision.type) {
      case "startTurn":
        return startTurn(run, context, decision.turnNumber)
      case "interruptTurn":
        return append(run, context, [
          { type: "AgentTurnInterruptedEvent", turnNumber: decision.turnNumber, reason: "crash" }
        ])
      case "requestModel":
        return requestModel(bench, context, decision.withTools)
      case "callTool":
        return Effect.flatMap(tools.call(decision.call, endOf(context)), ({ appended }) =>
          advance(run, context, appended)
        )
      case "refuseTool":
        return refuseTool(run, context, decision)
      case "softStop":
        return append(run, context, [
          { type: "SoftStopEvent", reason: "stepLimit", content: softStopSentence }
        ])
      case "pause": {
        const end = runs.pause(run, "stepLimit", summaryOf(context.lastText))
        return finish(run, context, { type: "interrupted", reason: "stepLimit" }, end)
      }
      case "completeTurn":
      case "finish": {
        if (context.isTurnDue) return completeTurn(run, context)
        const end = runs.complete(run, summaryOf(decision.text))
        return Effect.flatMap(durationMs(context), (spent) =>
          finish(run, context, { type: "completed", durationMs: spent }, end)
        )
      }
    }
  }

  return { act }
})

const softStopSentence =
  "You have used all the steps of this run. Call no tool any more: say in a few sentences what you have done and what is left."

const refusalSentences = {
  softStop: "The run has used its steps: no tool is called any more",
  abandoned: "The turn that asked for this call has ended: it was not made"
}

const summaryOf = (text: string): string => text.slice(0, runLimits.summaryMaxChars)
