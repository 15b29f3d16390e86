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
import { eventNumber, type LoggedEvent, type NewEvent } from "@tropism/domain/context-event"
import { fold, type ReducedContext } from "@tropism/domain/context"
import { decide, type Decision } from "@tropism/domain/decide"
import { Clock, Context, Effect, Layer, Option, type Scope } from "effect"
import { type AgentVersion, Agents } from "../agent/agents.ts"
import { Contexts } from "../agent/contexts.ts"
import type { PromptFailed } from "../agent/template.ts"
import { CrashPoint } from "../crash-point.ts"
import { Database, type ProjectTransaction } from "../database/database.ts"
import { runLimits } from "../limits.ts"
import type { ModelFailure, ModelUnavailable, ResolvedModel } from "../model/model-request.ts"
import { Models } from "../model/models.ts"
import { Outbox } from "../outbox/outbox.ts"
import { Projects } from "../database/projects.ts"
import type { AttemptLost, RunPrincipal } from "../tool/principal.ts"
import { type ConnectedTools, ToolServers } from "../tool/tool-servers.ts"
import { askModel } from "./answer.ts"
import { type Closing, closingEvents } from "./closing.ts"
import { evidenceOf, type Occasion, opening } from "./opening.ts"
import type { ClaimedRun } from "./claimed-run.ts"
import { type RunNotInState, Runs } from "./runs.ts"

/** What an attempt works with, found once at its beginning. */
interface Bench {
  readonly run: ClaimedRun
  readonly agent: AgentVersion
  readonly model: ResolvedModel
  readonly tools: ConnectedTools
}

/** Where an attempt begins. */
interface Prepared {
  readonly bench: Bench
  readonly context: ReducedContext
  /** The turn that this attempt opened, if it has. */
  readonly ownTurnNumber: number | undefined
}

/** Reasons that end a run as failed. */
type Failure = ModelFailure | ModelUnavailable | PromptFailed

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
      const outbox = yield* Outbox
      const models = yield* Models
      const projects = yield* Projects
      const toolServers = yield* ToolServers

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

      /** What woke the run, read back from its rows. */
      const occasionOf = Effect.fnUntraced(function* (run: ClaimedRun) {
        const found = yield* Effect.forEach(run.trigger.events ?? [], ({ id }) => outbox.get(id))
        const occasion: Occasion = {
          trigger: run.trigger,
          events: found.filter((event) => event !== undefined),
          project: (yield* projects.find) ?? { id: run.projectId, name: "" }
        }
        return occasion
      })

      const principalOf = (run: ClaimedRun, agent: AgentVersion, occasion: Occasion): RunPrincipal => ({
        projectId: run.projectId,
        runId: run.id,
        attemptToken: run.attemptToken,
        agentId: run.agentId,
        agentName: agent.definition.name,
        userId: run.userId,
        contextName: run.contextName,
        rootEventId: run.rootEventId,
        depth: run.depth,
        evidence: evidenceOf(occasion)
      })

      /** Finds agent, model and tools, and writes the first words of a run that has none. */
      const prepare = Effect.fn("Actor.prepare")(function* (run: ClaimedRun) {
        const { agent, occasion, context } = yield* database.inProject(
          run.projectId,
          Effect.gen(function* () {
            const agent = yield* agents.version(run.agentId, run.agentVersion)
            if (!agent)
              return yield* Effect.die(new Error(`Agent ${run.agentId} has no version ${run.agentVersion}`))
            return { agent, occasion: yield* occasionOf(run), context: yield* contexts.load(run.contextName) }
          })
        )
        const model = yield* models.resolve({
          agentName: agent.definition.name,
          model: agent.definition.model
        })
        const opened =
          context.messages.length === 0
            ? yield* begin(run, context, yield* opening(agent, occasion, model))
            : yield* goOn(run, context)
        const tools = yield* toolServers.connect(principalOf(run, agent, occasion), agent.definition.tools)
        const bench: Bench = { run, agent, model, tools }
        return { bench, ...opened }
      })

      /** The first words of a run, and its first turn with them. */
      const begin = Effect.fnUntraced(function* (
        run: ClaimedRun,
        context: ReducedContext,
        words: ReadonlyArray<NewEvent>
      ) {
        const ownTurnNumber = context.currentTurnNumber + 1
        const begun = yield* append(run, context, [
          ...words,
          { type: "AgentTurnStartedEvent", turnNumber: ownTurnNumber }
        ])
        yield* CrashPoint.hit("run.afterTurnStarted")
        return { context: begun, ownTurnNumber }
      })

      /** A log that has words already: after a crash, or in a context that people speak in. */
      const goOn = Effect.fnUntraced(function* (run: ClaimedRun, context: ReducedContext) {
        const session: ReadonlyArray<NewEvent> = context.isSessionOpen
          ? []
          : [{ type: "SessionStartedEvent" }]
        return {
          context: session.length === 0 ? context : yield* append(run, context, session),
          ownTurnNumber: undefined
        }
      })

      const requestModel = Effect.fn("Actor.requestModel")(function* (
        { run, model, tools }: Bench,
        context: ReducedContext,
        withTools: boolean
      ) {
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
          Effect.andThen(
            runs.countStep(run, answer.usage, answer.model),
            contexts.append(run.contextName, [
              {
                type: "AssistantMessageEvent",
                content: answer.text,
                toolCalls: answer.toolCalls,
                runId: run.id,
                model: answer.model,
                usage: answer.usage
              }
            ])
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
            return Effect.flatMap(tools.call(decision.call), ({ appended }) =>
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

      /** Rounds of decide and act. Bounded: each round appends, and steps are bounded. */
      const loop = Effect.fn("Actor.loop")(function* ({ bench, ...start }: Prepared) {
        const { run, agent } = bench
        const maxSteps = agent.definition.maxSteps ?? runLimits.maxSteps
        let context: ReducedContext | undefined = start.context
        let ownTurnNumber = start.ownTurnNumber
        while (context !== undefined) {
          const decision: Decision = decide({ context, runId: run.id, ownTurnNumber, maxSteps })
          if (decision.type === "startTurn") ownTurnNumber = decision.turnNumber
          context = yield* act(bench, context, decision)
        }
      })

      const failRun = Effect.fnUntraced(function* (run: ClaimedRun, failure: Failure) {
        const message =
          "message" in failure && failure.message !== ""
            ? failure.message
            : "detail" in failure
              ? failure.detail
              : failure._tag
        const close = Effect.gen(function* () {
          const context = yield* contexts.load(run.contextName)
          yield* contexts.append(
            run.contextName,
            closingEvents(context, { type: "failed", error: message.slice(0, runLimits.errorMaxChars) })
          )
          yield* runs.fail(run, message)
        })
        yield* guarded(run, close)
      })

      const work = Effect.fn("Actor.work")(
        (run: ClaimedRun): Effect.Effect<void> => {
          const attempt: Effect.Effect<void, Failure | RunNotInState | AttemptLost, Scope.Scope> =
            Effect.flatMap(prepare(run), loop)
          return Effect.scoped(attempt).pipe(
            Effect.catchTag(["ModelFailure", "ModelUnavailable", "PromptFailed"], (failure) =>
              failRun(run, failure)
            ),
            Effect.catchTag(["RunNotInState", "AttemptLost"], () =>
              Effect.logInfo("The attempt was lost: another worker, a person or the clock has the run", {
                runId: run.id
              })
            )
          )
        },
        (work, run) => Effect.annotateLogs(work, { runId: run.id, attempt: run.attempt })
      )

      return Actor.of({ work })
    })
  )
}

const softStopSentence =
  "You have used all the steps of this run. Call no tool any more: say in a few sentences what you have done and what is left."

const refusalSentences = {
  softStop: "The run has used its steps: no tool is called any more",
  abandoned: "The turn that asked for this call has ended: it was not made"
}

const summaryOf = (text: string): string => text.slice(0, runLimits.summaryMaxChars)
