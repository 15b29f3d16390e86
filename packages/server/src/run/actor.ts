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
import type { NewEvent } from "@tropism/domain/context-event"
import type { ReducedContext } from "@tropism/domain/context"
import { decide, type Decision } from "@tropism/domain/decide"
import type { ToolCall } from "@tropism/domain/message"
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
import { evidenceOf, type Occasion, opening } from "./opening.ts"
import { type ClaimedRun, type RunNotInState, Runs } from "./runs.ts"

/** What an attempt works with, found once at its beginning. */
interface Bench {
  readonly run: ClaimedRun
  readonly agent: AgentVersion
  readonly model: ResolvedModel
  readonly tools: ConnectedTools
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

      const append = (run: ClaimedRun, events: ReadonlyArray<NewEvent>) =>
        guarded(run, contexts.append(run.contextName, events))

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
        if (context.messages.length === 0) yield* append(run, yield* opening(agent, occasion, model))
        else if (!context.isSessionOpen) yield* append(run, [{ type: "SessionStartedEvent" }])
        const tools = yield* toolServers.connect(principalOf(run, agent, occasion), agent.definition.tools)
        return { run, agent, model, tools } satisfies Bench
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
        yield* guarded(
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
      })

      const refuseTool = (run: ClaimedRun, call: ToolCall) =>
        append(run, [
          {
            type: "ToolCallFailedEvent",
            callId: call.id,
            tool: call.name,
            error: { error: "The run has used its steps: no tool is called any more", reason: "stepLimit" }
          }
        ])

      const durationMs = Effect.fnUntraced(function* (context: ReducedContext) {
        const now = yield* Clock.currentTimeMillis
        return Option.match(context.agentTurnStartedAt, {
          onNone: () => 0,
          onSome: (start) => Math.max(0, now - new Date(start).getTime())
        })
      })

      /** Ends the run, unless somebody spoke since the log was read: then there is more to do. */
      const finish = Effect.fn("Actor.finish")(function* (
        run: ClaimedRun,
        context: ReducedContext,
        end: Effect.Effect<void, RunNotInState, ProjectTransaction>
      ) {
        yield* CrashPoint.hit("run.beforeComplete")
        const isOver = yield* guarded(
          run,
          Effect.gen(function* () {
            const last = yield* contexts.lock(run.contextName)
            if (last !== context.nextEventNumber - 1) return false
            yield* contexts.append(run.contextName, [{ type: "SessionEndedEvent" }])
            yield* end
            return true
          })
        )
        yield* CrashPoint.hit("run.afterComplete")
        return isOver
      })

      /** Does the one thing decided; true when the run is over. */
      const act = Effect.fnUntraced(function* (bench: Bench, context: ReducedContext, decision: Decision) {
        const { run, tools } = bench
        switch (decision.type) {
          case "startTurn":
            yield* append(run, [{ type: "AgentTurnStartedEvent", turnNumber: decision.turnNumber }])
            yield* CrashPoint.hit("run.afterTurnStarted")
            return false
          case "interruptTurn":
            yield* append(run, [
              { type: "AgentTurnInterruptedEvent", turnNumber: decision.turnNumber, reason: "crash" }
            ])
            return false
          case "requestModel":
            yield* requestModel(bench, context, decision.withTools)
            return false
          case "callTool":
            yield* tools.call(decision.call)
            return false
          case "refuseTool":
            yield* refuseTool(run, decision.call)
            return false
          case "softStop":
            yield* append(run, [{ type: "SoftStopEvent", reason: "stepLimit", content: softStopSentence }])
            return false
          case "completeTurn": {
            const event: NewEvent = {
              type: "AgentTurnCompletedEvent",
              turnNumber: context.currentTurnNumber,
              durationMs: yield* durationMs(context)
            }
            yield* append(run, [event])
            return false
          }
          case "pause": {
            yield* append(run, [
              {
                type: "AgentTurnInterruptedEvent",
                turnNumber: context.currentTurnNumber,
                reason: "stepLimit"
              }
            ])
            const now = yield* database.inProject(run.projectId, contexts.load(run.contextName, context))
            return yield* finish(run, now, runs.pause(run, "stepLimit", summaryOf(now.lastText)))
          }
          case "finish":
            return yield* finish(run, context, runs.complete(run, summaryOf(decision.text)))
        }
      })

      /** Rounds of fold, decide, act. Bounded: each round appends, and steps are bounded. */
      const loop = Effect.fn("Actor.loop")(function* (bench: Bench) {
        const { run, agent } = bench
        let context = yield* database.inProject(run.projectId, contexts.load(run.contextName))
        let ownTurnNumber: number | undefined
        while (true) {
          const decision = decide({
            context,
            runId: run.id,
            ownTurnNumber,
            maxSteps: agent.definition.maxSteps ?? runLimits.maxSteps
          })
          if (decision.type === "startTurn") ownTurnNumber = decision.turnNumber
          if (yield* act(bench, context, decision)) return
          context = yield* database.inProject(run.projectId, contexts.load(run.contextName, context))
        }
      })

      const failRun = Effect.fnUntraced(function* (run: ClaimedRun, failure: Failure) {
        const message =
          "message" in failure && failure.message !== ""
            ? failure.message
            : "detail" in failure
              ? failure.detail
              : failure._tag
        const context = yield* database.inProject(run.projectId, contexts.load(run.contextName))
        const events: Array<NewEvent> = []
        if (Option.isSome(context.agentTurnStartedAtEventId)) {
          events.push({
            type: "AgentTurnFailedEvent",
            turnNumber: context.currentTurnNumber,
            error: message.slice(0, runLimits.errorMaxChars)
          })
        }
        if (context.isSessionOpen) events.push({ type: "SessionEndedEvent" })
        yield* guarded(run, Effect.andThen(contexts.append(run.contextName, events), runs.fail(run, message)))
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

const summaryOf = (text: string): string => text.slice(0, runLimits.summaryMaxChars)
