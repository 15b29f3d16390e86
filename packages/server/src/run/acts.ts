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
import type { ReducedContext } from "@tropism/domain/context"
import { askedText } from "@tropism/domain/context-flow"
import { type Decision, isUnderWay } from "@tropism/domain/decide"
import type { NewEvent } from "@tropism/domain/context-event"
import type { FlowPlace } from "@tropism/domain/flow"
import { type ToolCall, wordsBeside } from "@tropism/domain/message"
import { askedBy } from "@tropism/domain/speakers"
import { Clock, Effect, Fiber, Option, type Schema } from "effect"
import { endOf } from "../agent/appending.ts"
import { Contexts } from "../agent/contexts.ts"
import { CrashPoint } from "../crash-point.ts"
import { runLimits } from "../limits.ts"
import { CurrentProgress } from "../model/progress.ts"
import { type Foresight, foresights } from "./asking.ts"
import { type Bench, equipmentNow, flowOf, isLastTurn, timeUp } from "./bench.ts"
import { makeBreakingIn } from "./breaking-in.ts"
import type { ClaimedRun } from "./claimed-run.ts"
import { Descendants } from "./descendants.ts"
import { makeModelStep } from "./model-step.ts"
import { makeObserving } from "./observing.ts"
import { makeNoting } from "./noting.ts"
import { type Occasion, stepStart } from "./opening.ts"
import { makeRecalling } from "./recalling.ts"
import { durationMs, makeRests } from "./rests.ts"
import { Runs } from "./runs.ts"
import {
  abortReasons,
  answerFailures,
  continuationSentence,
  doomLoopSentence,
  refusalSentences,
  summaryOf,
  underWay,
  warningSentences
} from "./sentences.ts"
import { makeSummarizing } from "./summarizing.ts"
import type { Abort } from "../tool/foreign-calls.ts"
import { makeLogCursor } from "../tool/log-append.ts"
import { type Place, sideBySide } from "../tool/side-by-side.ts"
import { ToolCalls } from "../tool/tool-calls.ts"
import { makeWriting } from "./writing.ts"
import { makeDropping } from "../task/dropping.ts"

type Refusal = Extract<Decision, { readonly type: "refuseTool" }>

const failureSentence = (decision: Extract<Decision, { readonly type: "fail" }>): string =>
  decision.reason === "doomLoop"
    ? doomLoopSentence(decision.call, decision.times)
    : answerFailures[decision.reason]

/** The acts, one for each decision. */
export const makeActs = Effect.gen(function* () {
  const runs = yield* Runs
  const contexts = yield* Contexts
  const toolCalls = yield* ToolCalls
  const descendants = yield* Descendants
  const { advance, append, appendForeseeing, appendUnlessGrown, catchUp, guarded } = yield* makeWriting
  const { complete, fail, interrupt, pause, softStop, wait } = yield* makeRests
  const { requestModel } = yield* makeModelStep
  const { summarize } = yield* makeSummarizing
  const { recalled } = yield* makeRecalling
  const { takeNotes } = yield* makeNoting
  const { dropQuestion } = yield* makeDropping
  const { toolCall } = yield* makeObserving
  const { broken } = yield* makeBreakingIn

  const refuseTool = (run: ClaimedRun, context: ReducedContext, { call, reason }: Refusal) => {
    const error = isUnderWay(context, call.id) ? underWay : { error: refusalSentences[reason], reason }
    const failed: NewEvent = { type: "ToolCallFailedEvent", callId: call.id, tool: call.name, error }
    return Object.hasOwn(context.waitingCalls, call.id)
      ? abandonCall(run, context, call, failed, error)
      : append(run, context, [failed])
  }

  /**
   * Waits no longer for the outcome of a call, unless it has come since the log was read; runs that it began are ended, and a question is
   * withdrawn.
   *
   * **Details** The call may be of another run, which ended without closing its log, as a restore ends runs: nobody brings its outcome.
   */
  const abandonCall = Effect.fnUntraced(function* (
    run: ClaimedRun,
    context: ReducedContext,
    call: ToolCall,
    failed: NewEvent,
    error: Schema.Json
  ) {
    const abandon = Effect.gen(function* () {
      const wasWaiting = yield* toolCalls.end(run.id, call.id, "abandoned", error)
      if (wasWaiting)
        return yield* Effect.tap(contexts.append(run.contextName, [failed]), dropQuestion(run.id, call.id))
      const { pendingCalls } = yield* contexts.load(run.contextName, context)
      const isUnanswered = pendingCalls.some(({ id }) => id === call.id)
      return isUnanswered ? yield* contexts.append(run.contextName, [failed]) : []
    })
    const after = yield* advance(run, context, yield* guarded(run, abandon))
    yield* descendants.cancelBelow(run.projectId, run.id)
    return after
  })

  /** Waits until it is quiet; whoever spoke meanwhile is heard then. */
  const gather = Effect.fnUntraced(function* (run: ClaimedRun, context: ReducedContext, untilMs: number) {
    const now = yield* Clock.currentTimeMillis
    yield* Effect.sleep(Math.max(0, untilMs - now))
    yield* CrashPoint.hit("run.afterDebounce")
    return yield* catchUp(run, context)
  })

  const startTurn = Effect.fnUntraced(function* (
    run: ClaimedRun,
    context: ReducedContext,
    turnNumber: number
  ) {
    const { events, taint } = yield* recalled(run, context)
    const began: NewEvent = { type: "AgentTurnStartedEvent", turnNumber }
    const started = yield* appendForeseeing(run, context, [began, ...events], {}, taint)
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

  /** Begins a step of the flow. Where somebody spoke meanwhile, a conversation's is not begun: that is heard first. */
  const startStep = Effect.fnUntraced(function* (bench: Bench, context: ReducedContext, place: FlowPlace) {
    const { agent, isConversation, occasion, run } = bench
    const steps = flowOf(bench, context)?.steps ?? []
    if (!isConversation) {
      const begun = yield* stepStart(agent, occasion, { steps, progress: context.flow, place })
      return yield* append(run, context, [...(yield* modelOfStep(bench, context, place)), begun])
    }
    const progress = context.isAsked ? Option.none() : context.flow
    const asked: Occasion = { ...occasion, trigger: { ...occasion.trigger, input: askedText(context) } }
    return yield* appendUnlessGrown(run, context, [
      yield* stepStart(agent, asked, { steps, progress, place })
    ])
  })

  /** Says in the log of a run that another model answers from a step on. */
  const modelOfStep = Effect.fnUntraced(function* (
    bench: Bench,
    context: ReducedContext,
    { step }: FlowPlace
  ) {
    const { model } = yield* bench.equipmentOf(flowOf(bench, context), step)
    const { name, provider } = model
    const isSame = Option.exists(
      context.config.primary,
      (primary) => primary.provider === provider && primary.name === name
    )
    const set: NewEvent = { type: "SetLlmConfigEvent", role: "primary", provider, name }
    return isSame ? [] : [set]
  })

  /** Waits until the run's time is up or somebody interrupts the turn; answers why calls are aborted. It begins to wait with the first call that asks. */
  const abortOf = Effect.fnUntraced(function* (bench: Bench, context: ReducedContext) {
    const state = { isAborted: false }
    const waiting: Abort = Effect.raceFirst(
      Effect.as(timeUp(bench), abortReasons.time),
      Effect.map(broken(bench.run, context), (who) => abortReasons[who])
    ).pipe(
      Effect.tap(() =>
        Effect.sync(() => {
          state.isAborted = true
        })
      )
    )
    const begun = yield* Effect.cached(Effect.forkIn(waiting, yield* Effect.scope))
    return { abort: Effect.flatMap(begun, Fiber.join), isAborted: () => state.isAborted }
  })

  /** Makes a call, and beside it those after it that may be: between two calls of foreign servers, for nothing else takes long. */
  const callTools = Effect.fnUntraced(function* (
    bench: Bench,
    context: ReducedContext,
    wanted: readonly [ToolCall, ...ReadonlyArray<ToolCall>]
  ) {
    const { run } = bench
    const { tools } = yield* equipmentNow(bench, context)
    const known = wanted.map((call) => ({ call, traits: tools.traitsOf(call) }))
    const isForeign = known.map(({ traits }) => traits.server !== null)
    const calls = known.slice(0, isForeign[0] === true ? isForeign.lastIndexOf(true) + 1 : 1)
    let foresight: Foresight | undefined
    const foreseeing = Effect.map(runs.foresee(run), (foreseen) => {
      foresight = foreseen
    })
    const isLast = context.pendingCalls.length === 1
    const { abort, isAborted } = yield* abortOf(bench, context)
    const log = makeLogCursor(endOf(context))
    const progress = yield* CurrentProgress
    yield* sideBySide(
      calls.map(({ call, traits }) => ({
        traits,
        make: (place: Place) => {
          const making = tools.call(
            { ...call, words: wordsBeside(context.messages, call.id) },
            askedBy(context, run.userId),
            { abort, log, place, beside: isLast ? foreseeing : undefined }
          )
          const made = Effect.suspend(() =>
            isAborted()
              ? Effect.succeed(undefined)
              : progress.during(toolCall(run, tools, call, making), runLimits.toolAtWorkMs)
          )
          return traits.server === null ? Effect.andThen(place.toBegin, made) : made
        }
      }))
    )
    const after = yield* advance(run, context, log.appended())
    if (foresight !== undefined) foresights.set(after, foresight)
    return after
  }, Effect.scoped)

  /** Does the one thing decided; answers the state after it, or nothing when the run is over. */
  const act = (bench: Bench, context: ReducedContext, decision: Decision) => {
    const { run } = bench
    switch (decision.type) {
      case "startTurn":
        return startTurn(run, context, decision.turnNumber)
      case "startStep":
        return Effect.tap(startStep(bench, context, decision.place), () =>
          CrashPoint.hit("run.afterFlowStep")
        )
      case "interruptTurn":
        return interrupt(run, context, decision.reason, "", bench.orphanedTurn === decision.turnNumber)
      case "debounce":
        return gather(run, context, decision.untilMs)
      case "requestModel":
        return requestModel(bench, context, decision.withTools)
      case "summarize":
        return summarize(bench, context)
      case "takeNotes":
        return takeNotes(bench, context)
      case "callTool":
        return callTools(bench, context, [decision.call, ...decision.beside])
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
      case "goOn":
        return append(run, context, [{ type: "ContinuationRequestedEvent", content: continuationSentence }])
      case "pause":
        return pause(run, context, decision.reason)
      case "fail":
        return Effect.tap(fail(run, context, failureSentence(decision), decision.reason), () =>
          descendants.cancelBelow(run.projectId, run.id)
        )
      case "completeTurn":
      case "finish": {
        if (context.isTurnDue || (decision.type === "completeTurn" && !isLastTurn(bench, context)))
          return completeTurn(run, context)
        return complete(run, context, summaryOf(decision.text))
      }
    }
  }

  return { act }
})
