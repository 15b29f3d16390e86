/**
 * Works on one claimed run until it ends: reads the log, decides, acts, appends.
 *
 * Flow: graph → outbox → dispatch → **run** → tool → task
 *
 * The actor is a disposable fold of its context's log. Each round it folds what
 * is new, asks the pure decider what comes next and does that one thing; every
 * write carries the attempt's token. If it dies anywhere, another actor folds
 * the same log and goes on. It holds no counter and no flag of its own beside
 * the turn that it opened.
 */
import type { NewEvent, TurnFailure } from "@tropism/domain/context-event"
import { emptyContext, type ReducedContext } from "@tropism/domain/context"
import type { Decision } from "@tropism/domain/decide"
import { guardSettings, reducerSettings } from "@tropism/domain/model-settings"
import { limitsOf } from "@tropism/domain/run-limits"
import { taintOfEvents, type TaintSource } from "@tropism/domain/taint"
import { allowsOffered } from "@tropism/domain/tool-pattern"
import { beginningOf } from "@tropism/domain/text-beginning"
import { Cause, Clock, Context, Effect, Layer, Option } from "effect"
import { type AgentVersion, Agents } from "../agent/agents.ts"
import { Contexts } from "../agent/contexts.ts"
import type { PromptFailed } from "../agent/template.ts"
import { CrashPoint } from "../crash-point.ts"
import { Database, findPermanentFault } from "../database/database.ts"
import { runLimits } from "../limits.ts"
import type { ModelFailure, ModelUnavailable, ResolvedModel } from "../model/model-request.ts"
import { CurrentProgress } from "../model/progress.ts"
import { throughOutages } from "../outbox/outages.ts"
import type { AttemptLost, RunPrincipal } from "../tool/principal.ts"
import { makeUnmadeCalls } from "../tool/unmade-calls.ts"
import { makeActs } from "./acts.ts"
import { type Bench, decideNow, equipmentNow } from "./bench.ts"
import type { ClaimedRun } from "./claimed-run.ts"
import { type Failed, failedEnd, lastWordsOf, nextSession, turnClosing } from "./closing.ts"
import { Descendants } from "./descendants.ts"
import { Endings } from "./endings.ts"
import { makeEquipment } from "./equipment.ts"
import type { GuardFlagged } from "./guarding.ts"
import { makeHearing } from "./hearing.ts"
import type { RunHalted, RunNotInState } from "./holding.ts"
import { makeKeeping } from "./keeping.ts"
import { makeLateMessages } from "./late-messages.ts"
import { makeObserving } from "./observing.ts"
import { evidenceOf, type Occasion, opening } from "./opening.ts"
import { ProviderWaits } from "./provider-waits.ts"
import { RunAppends } from "./run-appends.ts"
import { Runs } from "./runs.ts"
import { permanentSentence, summaryOf } from "./sentences.ts"
import { makeWriting } from "./writing.ts"

/** Where an attempt begins. */
interface Prepared {
  readonly bench: Bench
  readonly context: ReducedContext
  /** The turn that this attempt opened, if it has. */
  readonly ownTurnNumber: number | undefined
  /** The last event of the context's newest snapshot; 0 without one. */
  readonly keptNumber: number
}

/** With what a run begins. */
interface Opened {
  readonly agent: AgentVersion
  readonly model: ResolvedModel
  readonly occasion: Occasion
}

/** Reasons that end a run as failed. */
type Failure = ModelFailure | ModelUnavailable | PromptFailed | GuardFlagged

export class Actor extends Context.Service<
  Actor,
  {
    /** Brings a claimed run to its end, or stops when the attempt is lost. */
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
      const endings = yield* Endings
      const descendants = yield* Descendants
      const { append, appendForeseeing, guarded } = yield* makeWriting
      const equipmentFor = yield* makeEquipment
      const { unmade } = yield* makeUnmadeCalls
      const appends = yield* RunAppends
      const { act } = yield* makeActs
      const { keepDue } = yield* makeKeeping
      const { answerLate } = yield* makeLateMessages
      const observing = yield* makeObserving
      const hear = yield* makeHearing
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

      /** A version never changes, so what a run before had found need not be read again. */
      const versionOf = Effect.fnUntraced(function* (run: ClaimedRun) {
        const { agentId, agentVersion, projectId } = run
        const agent =
          agents.remembered(projectId, agentId, agentVersion) ??
          (yield* database.inProject(projectId, agents.version(agentId, agentVersion)))
        return agent ?? (yield* Effect.die(new Error(`Agent ${agentId} has no version ${agentVersion}`)))
      })

      /** Finds agent, model and tools, and writes the first words of a run that has none. */
      const prepare = Effect.fn("Actor.prepare")(function* (run: ClaimedRun) {
        const agent = yield* versionOf(run)
        const occasion = occasionOf(run)
        const { context, keptNumber } =
          run.loggedEvents === 0
            ? { context: emptyContext, keptNumber: 0 }
            : yield* database.inProject(run.projectId, contexts.open(run.contextName))
        const bench = yield* benchOf(run, agent, occasion, context)
        // A model that cannot be used ends a run before it says its first word.
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
        const bench: Bench = {
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

      /** What a run reads before it asks a model, and what of it is untrusted. */
      const open = Effect.fnUntraced(function* (
        run: ClaimedRun,
        context: ReducedContext,
        { agent, model, occasion }: Opened
      ) {
        const heard = yield* hear(run, occasion)
        const words = yield* opening(agent, occasion, model, heard?.content)
        return yield* begin(run, context, words, [...taintOfEvents(run.events), ...(heard?.taint ?? [])])
      })

      /** The first words of a run, and its first turn with them. */
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

      /** A log that has words already: after a crash, or in a context that people speak in. */
      const goOn = Effect.fnUntraced(function* (run: ClaimedRun, context: ReducedContext, of: AgentVersion) {
        const isTurnOpen = Option.isSome(context.agentTurnStartedAtEventId)
        // A run that was queued goes on in the session that is open; where an actor died, its session ends, with its turn if that is open.
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

      /** Rounds of decide and act. Bounded: each round appends, and steps are bounded. */
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
          // Nobody speaks between the look and the end.
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
        yield* throughOutages(guarded(run, close))
        yield* endBelow(run)
      })

      /** Lets a run wait whose provider is away, unless it has waited for too long; any other failure ends it. */
      const meet = Effect.fnUntraced(function* (run: ClaimedRun, failure: Failure) {
        const route = failure._tag === "ModelFailure" ? failure.waitsFor : undefined
        if (failure._tag !== "ModelFailure" || route === undefined)
          return yield* failRun(run, downfallOf(failure))
        const message = yield* throughOutages(
          database.inProject(run.projectId, providerWaits.wait(run, failure, route))
        )
        if (message !== undefined) yield* failRun(run, { reason: "model", message, isBlameless: true })
      })

      /** Ends what a run that has ended otherwise than by its own answer had spawned. */
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
                // Or nobody has: a kill switch that kept it from writing may be off again before the run followed it.
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

/** What brings a run down, and with what words. */
interface Downfall {
  readonly reason: TurnFailure
  readonly message: string
  readonly flagged?: GuardFlagged
  /** Its provider was away and did not come back. */
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

/** What a person is told of a failure. */
const sentenceOf = (failure: Failure): string => {
  if ("message" in failure && failure.message !== "") return failure.message
  return "detail" in failure ? failure.detail : failure._tag
}

/** A backtest's run sees the graph as its newest event left it. */
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
