/**
 * What an actor does when it has decided: one act, one transaction.
 *
 * Flow: graph → outbox → dispatch → **run** → tool → task
 *
 * Every act appends to the log and answers the state after it; an act that ends
 * the run answers nothing. All writes carry the attempt's token. Nothing is
 * decided here, except that a run in which somebody spoke meanwhile goes on.
 */
import { costMicrosOf } from "@tropism/domain/chain"
import { eventNumber, type LoggedEvent, type NewEvent } from "@tropism/domain/context-event"
import { fold, type ReducedContext } from "@tropism/domain/context"
import type { Decision } from "@tropism/domain/decide"
import { Clock, Effect, Option } from "effect"
import type { AgentVersion } from "../agent/agents.ts"
import { Contexts } from "../agent/contexts.ts"
import { CrashPoint } from "../crash-point.ts"
import { Database, type ProjectTransaction } from "../database/database.ts"
import { runLimits } from "../limits.ts"
import type { ResolvedModel } from "../model/model-request.ts"
import type { ConnectedTools } from "../tool/tool-servers.ts"
import { askModel } from "./answer.ts"
import type { ClaimedRun } from "./claimed-run.ts"
import { type Closing, closingEvents } from "./closing.ts"
import type { RunNotInState } from "./holding.ts"
import { Runs } from "./runs.ts"

/** What an attempt works with, found once at its beginning. */
export interface Bench {
  readonly run: ClaimedRun
  readonly agent: AgentVersion
  readonly model: ResolvedModel
  readonly tools: ConnectedTools
}

/** How an attempt writes to its log: guarded by its token, and folding what it wrote. */
export const makeWriting = Effect.gen(function* () {
  const database = yield* Database
  const runs = yield* Runs
  const contexts = yield* Contexts

  /** A transaction in which only the attempt that holds the run may write. */
  const guarded = <A, E>(run: ClaimedRun, effect: Effect.Effect<A, E, ProjectTransaction>) =>
    database.inProject(run.projectId, Effect.andThen(runs.hold(run), effect))

  /** Folds what was just appended; reads the log where somebody else wrote in between. */
  const advance = (run: ClaimedRun, context: ReducedContext, appended: ReadonlyArray<LoggedEvent>) => {
    const [first] = appended
    return first && eventNumber(first.id) === context.nextEventNumber
      ? Effect.succeed(fold(appended, context))
      : database.inProject(run.projectId, contexts.load(run.contextName, context))
  }

  const append = (run: ClaimedRun, context: ReducedContext, events: ReadonlyArray<NewEvent>) =>
    Effect.flatMap(guarded(run, contexts.append(run.contextName, events)), (appended) =>
      advance(run, context, appended)
    )

  return { guarded, advance, append }
})

/** The acts, one for each decision. */
export const makeActs = Effect.gen(function* () {
  const runs = yield* Runs
  const contexts = yield* Contexts
  const { advance, append, guarded } = yield* makeWriting

  const requestModel = Effect.fn("Actor.requestModel")(function* (
    { run, agent, model, tools }: Bench,
    context: ReducedContext,
    withTools: boolean
  ) {
    // A model is asked only for an agent that may still act: each request costs money and leads to more.
    const spent = yield* guarded(run, Effect.andThen(runs.mayGoOn(run), runs.findSpentBudget(run)))
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
    const appended = yield* guarded(
      run,
      // The log before the run's row: a message that comes now holds the log and looks for the run.
      Effect.tap(
        contexts.append(run.contextName, [
          {
            type: "AssistantMessageEvent",
            content: answer.text,
            toolCalls: answer.toolCalls,
            runId: run.id,
            model: answer.model,
            usage: answer.usage
          }
        ]),
        () =>
          runs.countStep(
            run,
            answer.usage,
            answer.model,
            costMicrosOf(agent.definition.model, answer.model, answer.usage)
          )
      )
    )
    yield* CrashPoint.hit("run.afterStep")
    return yield* advance(run, context, appended)
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
    const isOver = yield* guarded(
      run,
      Effect.gen(function* () {
        const last = yield* contexts.lock(run.contextName)
        if (last !== context.nextEventNumber - 1) return false
        yield* contexts.append(run.contextName, closingEvents(context, closing))
        yield* end
        return true
      })
    )
    yield* CrashPoint.hit("run.afterComplete")
    return isOver ? undefined : yield* advance(run, context, [])
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
        return Effect.flatMap(tools.call(decision.call), ({ appended }) => advance(run, context, appended))
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
