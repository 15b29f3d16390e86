/**
 * Works on one claimed run until it ends: reads the log, decides, acts, appends.
 *
 * The actor is a disposable fold of its context's log. Each round it folds new events, asks the pure decider for the next action and
 * performs it; every write carries the attempt's token. If the actor dies, another folds the same log and continues. Besides the number of
 * the turn it opened, it keeps no state of its own.
 */
import { emptyContext, type ReducedContext } from "@tropism/domain/context"
import type { NewEvent, TurnFailure } from "@tropism/domain/context-event"
import { askedText } from "@tropism/domain/context-flow"
import { type Decision, isUnderWay } from "@tropism/domain/decide"
import type { FlowPlace } from "@tropism/domain/flow"
import { type ToolCall, wordsBeside } from "@tropism/domain/message"
import { guardSettings, reducerSettings } from "@tropism/domain/model-settings"
import { limitsOf } from "@tropism/domain/run-limits"
import { askedBy } from "@tropism/domain/speakers"
import { taintOfEvents, type TaintSource } from "@tropism/domain/taint"
import { beginningOf } from "@tropism/domain/text-beginning"
import { allowsOffered } from "@tropism/domain/tool-pattern"
import { Cause, Clock, Context, Effect, Layer, Option, Fiber, type Schema } from "effect"
import { type AgentVersion, Agents } from "../agents/agents.ts"
import type { PromptFailed } from "../agents/template.ts"
import { endOf } from "../contexts/appending.ts"
import { Contexts, isSnapshotDue } from "../contexts/contexts.ts"
import { CrashPoint } from "../crash-point.ts"
import { Database, findPermanentFault } from "../database/database.ts"
import { runLimits } from "../limits.ts"
import type { ModelFailure, ModelUnavailable, ResolvedModel } from "../models/model-request.ts"
import { CurrentProgress } from "../models/progress.ts"
import { retryDuringOutages } from "../outbox/outages.ts"
import { makeDropping } from "../review/questions.ts"
import type { Abort } from "../tools/external-mcp/calls.ts"
import type { AttemptLost, RunPrincipal } from "../tools/principal.ts"
import { makeAbortedCalls, ToolCalls } from "../tools/tool-calls.ts"
import { makeLogCursor, type Place, sideBySide } from "../tools/toolbox.ts"
import { RunAppends, makeRunLog } from "./appends.ts"
import {
  type AttemptContext,
  decideNow,
  equipmentNow,
  makeModelAndTools,
  flowOf,
  isLastTurn,
  timeUp
} from "./attempt-context.ts"
import { type PrefetchedBudget, prefetchedBudgets } from "./budgets.ts"
import { RunCancellation, makeLateMessages } from "./cancellation.ts"
import type { RunHalted, RunNotInState } from "./fencing.ts"
import type { GuardFlagged } from "./guard.ts"
import { makeInterruption } from "./interruption.ts"
import { makeNoteTaking, makeMemoryRecall } from "./memory.ts"
import { makeModelStep } from "./model-step.ts"
import { makeRejectionBriefing, evidenceOf, type Occasion, opening, stepStart } from "./opening.ts"
import { ProviderWaits } from "./provider-waits.ts"
import { Runs } from "./run-store.ts"
import { makeRunTelemetry } from "./run-telemetry.ts"
import {
  permanentSentence,
  summaryOf,
  abortReasons,
  answerFailures,
  continuationSentence,
  doomLoopSentence,
  refusalSentences,
  underWay,
  warningSentences
} from "./run-texts.ts"
import type { ClaimedRun } from "./run-types.ts"
import {
  type Failed,
  failedEnd,
  lastWordsOf,
  nextSession,
  turnClosing,
  durationMs,
  makeStopping
} from "./stopping.ts"
import { Descendants } from "./sub-runs.ts"
import { makeSummaries } from "./summaries.ts"

/** The starting point of an attempt. */
interface Prepared {
  readonly bench: AttemptContext
  readonly context: ReducedContext
  /** The turn that this attempt opened, if any. */
  readonly ownTurnNumber: number | undefined
  /** The last event of the context's newest snapshot; 0 without one. */
  readonly keptNumber: number
}

/** The state with which a run begins. */
interface Opened {
  readonly agent: AgentVersion
  readonly model: ResolvedModel
  readonly occasion: Occasion
}

/** Errors that fail a run. */
type Failure = ModelFailure | ModelUnavailable | PromptFailed | GuardFlagged

export class Actor extends Context.Service<
  Actor,
  {
    /** Works on a claimed run until it ends, or stops when the attempt is lost. */
    readonly work: (run: ClaimedRun) => Effect.Effect<void>
  }
>()("@tropism/server/run/Actor") {
  static readonly layer = Layer.effect(
    Actor,
    Effect.gen(function* () {
      const database = yield* Database
      const runs = yield* Runs
      const agents = yield* Agents
      const contexts = yield* Contexts
      const endings = yield* RunCancellation
      const descendants = yield* Descendants
      const { append, appendForeseeing, guarded } = yield* makeRunLog
      const equipmentFor = yield* makeModelAndTools
      const { unmade } = yield* makeAbortedCalls
      const appends = yield* RunAppends
      const { act } = yield* makeActs
      const { keepDue } = yield* makeKeeping
      const { answerLate } = yield* makeLateMessages
      const observing = yield* makeRunTelemetry
      const hear = yield* makeRejectionBriefing
      const providerWaits = yield* ProviderWaits

      const principalOf = (run: ClaimedRun, agent: AgentVersion, occasion: Occasion): RunPrincipal => ({
        projectId: run.projectId,
        runId: run.id,
        attemptToken: run.attemptToken,
        agentId: run.agentId,
        agentName: agent.definition.name,
        agentVersion: run.agentVersion,
        userId: run.userId,
        askedBy: [],
        backtest: backtestedOf(run),
        contextName: run.contextName,
        rootEventId: run.rootEventId,
        depth: run.depth,
        evidence: evidenceOf(occasion),
        wokenBy: occasion.events.map(({ entityId, version }) => ({ id: entityId, version }))
      })

      /** Versions are immutable, so a version that another run has read is reused. */
      const versionOf = Effect.fnUntraced(function* (run: ClaimedRun) {
        const { agentId, agentVersion, projectId } = run
        const agent =
          agents.remembered(projectId, agentId, agentVersion) ??
          (yield* database.inProject(projectId, agents.version(agentId, agentVersion)))
        return agent ?? (yield* Effect.die(new Error(`Agent ${agentId} has no version ${agentVersion}`)))
      })

      /** Finds the agent, model and tools, and appends the opening events of a run that has none. */
      const prepare = Effect.fn("Actor.prepare")(function* (run: ClaimedRun) {
        const agent = yield* versionOf(run)
        const occasion = occasionOf(run)
        const { context, keptNumber } =
          run.loggedEvents === 0
            ? { context: emptyContext, keptNumber: 0 }
            : yield* database.inProject(run.projectId, contexts.open(run.contextName))
        const bench = yield* benchOf(run, agent, occasion, context)
        // An unusable model fails the run before its first event.
        const { model } = yield* equipmentNow(bench, context)
        const opened = Option.isNone(context.lastEventId)
          ? yield* open(run, context, { agent, model, occasion })
          : yield* goOn(run, context, agent)
        return { bench, keptNumber, ...opened }
      })

      const benchOf = Effect.fnUntraced(function* (
        run: ClaimedRun,
        agent: AgentVersion,
        occasion: Occasion,
        context: ReducedContext
      ) {
        const { definition } = agent
        const now = yield* Clock.currentTimeMillis
        const { maxSteps } = limitsOf(definition, run.ancestors.length > 0, run.limits)
        const bench: AttemptContext = {
          run,
          agent,
          occasion,
          maxSteps,
          isConversation: run.trigger.type === "context",
          deadlineMs: run.timeLeftMs === null ? null : now + run.timeLeftMs,
          orphanedTurn:
            !run.wasQueued && Option.isSome(context.agentTurnStartedAtEventId)
              ? context.currentTurnNumber
              : undefined,
          wasStopped: context.run.id === run.id && Option.isSome(context.run.softStop),
          mayRepeat: (tool) => allowsOffered(definition.repeatableTools, tool),
          equipmentOf: yield* equipmentFor(run, agent, principalOf(run, agent, occasion))
        }
        return bench
      })

      /** Returns the events that a run reads before its first model request, and which of them are untrusted. */
      const open = Effect.fnUntraced(function* (
        run: ClaimedRun,
        context: ReducedContext,
        { agent, model, occasion }: Opened
      ) {
        const heard = yield* hear(run, occasion)
        const words = yield* opening(agent, occasion, model, heard?.content)
        return yield* begin(run, context, words, [...taintOfEvents(run.events), ...(heard?.taint ?? [])])
      })

      /** Appends the opening events of a run and begins its first turn. */
      const begin = Effect.fnUntraced(function* (
        run: ClaimedRun,
        context: ReducedContext,
        words: ReadonlyArray<NewEvent>,
        taint: ReadonlyArray<TaintSource>
      ) {
        const ownTurnNumber = context.currentTurnNumber + 1
        const begun = yield* appendForeseeing(
          run,
          context,
          [...words, { type: "AgentTurnStartedEvent", turnNumber: ownTurnNumber }],
          {},
          taint
        )
        yield* CrashPoint.hit("run.afterTurnStarted")
        return { context: begun, ownTurnNumber }
      })

      /** Continues in a log that already has events: after a crash, or in a conversation. */
      const goOn = Effect.fnUntraced(function* (run: ClaimedRun, context: ReducedContext, of: AgentVersion) {
        const isTurnOpen = Option.isSome(context.agentTurnStartedAtEventId)
        // A queued run continues in the open session. When an actor died, its session ends, and its turn if that is open.
        const hasSession = !context.isSessionOpen || run.wasQueued || isTurnOpen
        const words = [
          ...(hasSession ? [] : nextSession(context)),
          ...guardSettings(of.definition.model, context.config)
        ]
        return {
          context: words.length === 0 ? context : yield* append(run, context, words),
          ownTurnNumber: run.wasQueued && isTurnOpen ? context.currentTurnNumber : undefined
        }
      })

      /** Repeats decide and act. It terminates, because each round appends and steps are limited. */
      const loop = Effect.fn("Actor.loop")(function* ({ bench, ...start }: Prepared) {
        let context: ReducedContext | undefined = start.context
        let { keptNumber, ownTurnNumber } = start
        const progress = yield* CurrentProgress
        while (context !== undefined) {
          progress.note()
          keptNumber = yield* keepDue(bench.run, context, keptNumber)
          const settings = reducerSettings(bench.agent.definition.reducer, context)
          if (settings.length > 0) context = yield* append(bench.run, context, settings)
          const decision: Decision = yield* decideNow(bench, context, ownTurnNumber)
          if (decision.type === "startTurn") ownTurnNumber = decision.turnNumber
          context = yield* act(bench, context, decision)
        }
      })

      const failRun = Effect.fnUntraced(function* (
        run: ClaimedRun,
        { flagged, isBlameless, message, reason }: Downfall
      ) {
        const close = Effect.gen(function* () {
          yield* runs.holdToFail(run)
          // The lock keeps messages out between this read and the end.
          yield* contexts.lock(run.contextName)
          const context = yield* contexts.load(run.contextName)
          const closing: Failed = {
            type: "failed",
            error: beginningOf(message, runLimits.errorMaxChars),
            reason
          }
          const events = turnClosing(context, closing)
          const records = yield* unmade(context.pendingCalls, events)
          yield* contexts.append(
            run.contextName,
            [...(flagged ? [flagged.verdict] : []), ...events],
            appends.terms(run, { ...flagged?.parts(events.length), unmade: records })
          )
          yield* runs.fail(run, reason, message, summaryOf(lastWordsOf(run, context)), isBlameless)
          const isAnsweredLate = yield* answerLate(run, context)
          yield* contexts.append(run.contextName, failedEnd(run, context, closing, isAnsweredLate))
        })
        yield* retryDuringOutages(guarded(run, close))
        yield* endBelow(run)
      })

      /** Makes a run wait for its unavailable provider unless it has waited too long; any other failure ends it. */
      const meet = Effect.fnUntraced(function* (run: ClaimedRun, failure: Failure) {
        const route = failure._tag === "ModelFailure" ? failure.waitsFor : undefined
        if (failure._tag !== "ModelFailure" || route === undefined)
          return yield* failRun(run, downfallOf(failure))
        const message = yield* retryDuringOutages(
          database.inProject(run.projectId, providerWaits.wait(run, failure, route))
        )
        if (message !== undefined) yield* failRun(run, { reason: "model", message, isBlameless: true })
      })

      /** Cancels the sub-runs of a run that did not complete by its own answer. */
      const endBelow = (run: ClaimedRun) =>
        agents.remembered(run.projectId, run.agentId, run.agentVersion)?.definition.subAgents.length === 0
          ? Effect.void
          : descendants.cancelBelow(run.projectId, run.id)

      const work = Effect.fn("Actor.work")(
        (run: ClaimedRun): Effect.Effect<void> => {
          const attempt: Effect.Effect<void, Failure | RunHalted | RunNotInState | AttemptLost> =
            Effect.flatMap(prepare(run), loop)
          return attempt.pipe(
            Effect.catchCause((cause) => {
              const fault = Cause.hasInterrupts(cause) ? undefined : findPermanentFault(cause)
              return fault === undefined
                ? Effect.failCause(cause)
                : Effect.andThen(
                    Effect.logError("A run breaks at what the database refuses for good", fault),
                    failRun(run, { reason: "refused", message: permanentSentence(fault) })
                  )
            }),
            Effect.catchTag(["GuardFlagged", "ModelFailure", "ModelUnavailable", "PromptFailed"], (failure) =>
              meet(run, failure)
            ),
            Effect.catchTag("RunHalted", ({ detail }) =>
              Effect.andThen(guarded(run, endings.cancel(run, { because: detail })), endBelow(run))
            ),
            Effect.catchTag(["RunNotInState", "AttemptLost"], () =>
              Effect.andThen(
                Effect.logInfo("The attempt was lost: another worker, a person or the clock has the run", {
                  code: "attemptLost"
                }),
                // Otherwise a kill switch that blocked the write may be off again before the run followed it.
                database.inProject(run.projectId, runs.yieldToSwitch(run))
              )
            )
          )
        },
        (work, run) => observing.attempt(run, work)
      )

      return Actor.of({ work })
    })
  )
}

/** Why a run fails, and with which text. */
interface Downfall {
  readonly reason: TurnFailure
  readonly message: string
  readonly flagged?: GuardFlagged
  /** Its provider was unavailable and did not return in time. */
  readonly isBlameless?: boolean
}

const downfallOf = (failure: Failure): Downfall =>
  failure._tag === "GuardFlagged"
    ? { reason: "guard", message: failure.message, flagged: failure }
    : { reason: reasonOf(failure), message: sentenceOf(failure) }

const reasonOf = (failure: Exclude<Failure, GuardFlagged>): TurnFailure => {
  if (failure._tag === "PromptFailed") return "prompt"
  return failure._tag === "ModelFailure" && failure.reason === "filtered" ? "contentFilter" : "model"
}

/** Returns the text of a failure for people. */
const sentenceOf = (failure: Failure): string => {
  if ("message" in failure && failure.message !== "") return failure.message
  return "detail" in failure ? failure.detail : failure._tag
}

/** A backtest's run sees the graph as of its newest event. */
const backtestedOf = ({ backtestId, events }: ClaimedRun): RunPrincipal["backtest"] => {
  const newest = events.at(-1)
  return backtestId === null ? null : { id: backtestId, asOf: new Date(newest?.createdAt ?? 0) }
}

const occasionOf = ({ events, occurrences, projectId, projectName, trigger }: ClaimedRun): Occasion => ({
  occurrences,
  trigger,
  events,
  project: { id: projectId, name: projectName }
})

// Carries out the actor's decisions: one action, one transaction.
//
// Every action appends to the log and returns the state after it; one that ends the run returns nothing. All writes carry the attempt's
// token. Nothing is decided here, with two exceptions: a run that received a message meanwhile continues, and an answer that leaves nothing
// to do completes the run.

type Refusal = Extract<Decision, { readonly type: "refuseTool" }>

const failureSentence = (decision: Extract<Decision, { readonly type: "fail" }>): string =>
  decision.reason === "doomLoop"
    ? doomLoopSentence(decision.call, decision.times)
    : answerFailures[decision.reason]

/** The actions, one for each decision. */
const makeActs = Effect.gen(function* () {
  const runs = yield* Runs
  const contexts = yield* Contexts
  const toolCalls = yield* ToolCalls
  const descendants = yield* Descendants
  const { advance, append, appendForeseeing, appendUnlessGrown, catchUp, guarded } = yield* makeRunLog
  const { complete, fail, interrupt, pause, softStop, wait } = yield* makeStopping
  const { requestModel } = yield* makeModelStep
  const { summarize } = yield* makeSummaries
  const { recalled } = yield* makeMemoryRecall
  const { takeNotes } = yield* makeNoteTaking
  const { dropQuestion } = yield* makeDropping
  const { toolCall } = yield* makeRunTelemetry
  const { broken } = yield* makeInterruption

  const refuseTool = (run: ClaimedRun, context: ReducedContext, { call, reason }: Refusal) => {
    const error = isUnderWay(context, call.id) ? underWay : { error: refusalSentences[reason], reason }
    const failed: NewEvent = { type: "ToolCallFailedEvent", callId: call.id, tool: call.name, error }
    return Object.hasOwn(context.waitingCalls, call.id)
      ? abandonCall(run, context, call, failed, error)
      : append(run, context, [failed])
  }

  /**
   * Stops waiting for a call's outcome unless it has arrived since the log was read; cancels the runs that it spawned and withdraws its
   * question.
   *
   * **Details** The call may belong to another run that ended without closing its log, as a restore ends runs: its outcome never arrives.
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

  /** Waits for the end of the quiet period, then reads the messages that arrived. */
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

  /** Ends a turn but not the run: a message that arrived meanwhile needs another turn. */
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

  /** Begins a workflow step. In a conversation with a new message the step does not begin; the message is read first. */
  const startStep = Effect.fnUntraced(function* (
    bench: AttemptContext,
    context: ReducedContext,
    place: FlowPlace
  ) {
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

  /** Records in the log that another model answers from this step on. */
  const modelOfStep = Effect.fnUntraced(function* (
    bench: AttemptContext,
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

  /**
   * Waits until the run's deadline or an interruption of the turn and returns why calls are aborted. It starts waiting with the first call
   * that needs it.
   */
  const abortOf = Effect.fnUntraced(function* (bench: AttemptContext, context: ReducedContext) {
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

  /**
   * Makes a call together with the calls after it that may run in parallel: only calls of external servers, because no others take long.
   */
  const callTools = Effect.fnUntraced(function* (
    bench: AttemptContext,
    context: ReducedContext,
    wanted: readonly [ToolCall, ...ReadonlyArray<ToolCall>]
  ) {
    const { run } = bench
    const { tools } = yield* equipmentNow(bench, context)
    const known = wanted.map((call) => ({ call, traits: tools.traitsOf(call) }))
    const isForeign = known.map(({ traits }) => traits.server !== null)
    const calls = known.slice(0, isForeign[0] === true ? isForeign.lastIndexOf(true) + 1 : 1)
    let prefetchedBudget: PrefetchedBudget | undefined
    const foreseeing = Effect.map(runs.foresee(run), (foreseen) => {
      prefetchedBudget = foreseen
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
    if (prefetchedBudget !== undefined) prefetchedBudgets.set(after, prefetchedBudget)
    return after
  }, Effect.scoped)

  /** Carries out one decision; returns the state after it, or nothing when the run has ended. */
  const act = (bench: AttemptContext, context: ReducedContext, decision: Decision) => {
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

// Saves snapshots of a context while a run works in it.
//
// Snapshots are saved apart from the run's own writes and without its fence, because a log folds to the same state for every reader. A
// snapshot only saves reading time, so a failure to save one does not fail the run.

const makeKeeping = Effect.gen(function* () {
  const database = yield* Database
  const contexts = yield* Contexts

  /** Saves the state if the log has grown enough since the last snapshot; returns the event number of the newest one. */
  const keepDue = Effect.fnUntraced(function* (
    { contextName, projectId }: ClaimedRun,
    context: ReducedContext,
    keptNumber: number
  ) {
    if (!isSnapshotDue(context, keptNumber)) return keptNumber
    yield* Effect.catchDefect(
      Effect.asVoid(database.ask(projectId, contexts.keeping(projectId, contextName, context))),
      (defect) => Effect.logWarning("A context could not be kept as a snapshot", defect)
    )
    return context.nextEventNumber - 1
  })

  return { keepDue }
})
