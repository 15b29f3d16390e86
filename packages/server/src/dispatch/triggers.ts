/**
 * Starts an agent because somebody asked: by hand, or by a message in a context.
 *
 * Flow: graph → outbox → **dispatch** → run → tool → task
 *
 * A trigger is a row before it is an answer: the caller may wait for the run,
 * but the run does not wait for the caller. A message and the run that will
 * answer it are one transaction, so no message is left unanswered.
 */
import type { Agent } from "@tropism/domain/agent"
import { ContextName, type NewEvent } from "@tropism/domain/context-event"
import type { ProjectId, RunId, UserId } from "@tropism/domain/ids"
import type { Stop } from "@tropism/domain/kill-switch"
import type { Run, Trigger } from "@tropism/domain/run"
import { isAtRest } from "@tropism/domain/run"
import { Context, Effect, Layer, Option, Result, Schema } from "effect"
import { Agents } from "../agent/agents.ts"
import { type ContextHead, Contexts } from "../agent/contexts.ts"
import { Database, outpaced, type ProjectTransaction } from "../database/database.ts"
import { Ids } from "../ids.ts"
import { agentLimits, runLimits } from "../limits.ts"
import { makePatience } from "../outbox/patience.ts"
import { nextWakeUp, WakeUps } from "../outbox/wake-ups.ts"
import { chainRoot } from "../run/claimed-run.ts"
import { KillSwitches } from "../run/kill-switches.ts"
import { Runs } from "../run/runs.ts"
import { Admission, TriggerRefused } from "../run/admission.ts"

/** Why a turn was not asked to end. */
export class InterruptRefused extends Schema.TaggedError<InterruptRefused>()("InterruptRefused", {
  reason: Schema.Literals(["noTurn", "underWay", "ofBacktest"])
}) {}

/** Why nobody speaks in the context of a backtest, and what to do instead. */
export const ofBacktestSentence =
  "A backtest works in this context, so it is not for talking: fork it, and speak in the fork"

/** Refuses what somebody would write into the context of a backtest: it tells what the agent would have done by itself. */
export const openToPeople = ({ isOfBacktest }: ContextHead): Effect.Effect<void, TriggerRefused> =>
  isOfBacktest
    ? Effect.fail(new TriggerRefused({ reason: "ofBacktest", detail: ofBacktestSentence }))
    : Effect.void

export class Triggers extends Context.Service<
  Triggers,
  {
    /** Queues a run of the agent, unless it is disabled or stopped or has too many. */
    readonly byHand: (
      agent: Agent,
      input: Schema.Json | undefined,
      by: UserId
    ) => Effect.Effect<RunId, TriggerRefused, ProjectTransaction>
    /**
     * Keeps an event in a context; one that triggers has a run that will answer it, or is refused with nothing kept.
     *
     * **Details** What must hold of the log for the event is `judged` in the same transaction, just before it is kept.
     */
    readonly byEvent: <E = never>(
      context: ContextHead,
      event: NewEvent,
      by: UserId,
      judged?: Effect.Effect<void, E, ProjectTransaction>
    ) => Effect.Effect<void, TriggerRefused | E, ProjectTransaction>
    /** Asks for the end of the turn that is open, and wakes its run where that waits for somebody; answers what keeps the turn from ending before that is off. */
    readonly interrupt: (
      context: ContextHead,
      by: UserId
    ) => Effect.Effect<Stop | undefined, InterruptRefused, ProjectTransaction>
    /** The run as it is now. */
    readonly look: (projectId: ProjectId, id: RunId) => Effect.Effect<Run | undefined>
    /** A run as this transaction sees it. */
    readonly seen: (id: RunId) => Effect.Effect<Run | undefined, never, ProjectTransaction>
    /** Waits until a run is at rest (ended or paused), but no longer than the bound. */
    readonly settled: (projectId: ProjectId, id: RunId) => Effect.Effect<Run | undefined>
  }
>()("@tropism/server/dispatch/Triggers") {
  static readonly layer = Layer.effect(
    Triggers,
    Effect.gen(function* () {
      const database = yield* Database
      const runs = yield* Runs
      const admission = yield* Admission
      const agents = yield* Agents
      const contexts = yield* Contexts
      const ids = yield* Ids
      const wakeUps = yield* WakeUps
      const switches = yield* KillSwitches

      const byHand = Effect.fn("Triggers.byHand")(function* (
        agent: Agent,
        input: Schema.Json | undefined,
        by: UserId
      ) {
        yield* admission.places(agent.id)
        const id = (yield* ids.next) as RunId
        const trigger: Trigger = { type: "manual", ...(input === undefined ? {} : { input }) }
        const contextName = ContextName.make(`run-${id}`)
        yield* runs.queue([chainRoot(id, agent, { contextName, trigger, userId: by })])
        return id
      })

      const byEvent = Effect.fn("Triggers.byEvent")(function* <E>(
        context: ContextHead,
        event: NewEvent,
        by: UserId,
        judged: Effect.Effect<void, E, ProjectTransaction> = Effect.void
      ) {
        yield* openToPeople(context)
        const keep = Effect.andThen(judged, contexts.append(context.name, [addedBy(event, by)]))
        if (event.triggersAgentTurn !== true) return yield* Effect.asVoid(keep)
        // What nobody would answer is not taken: neither by a disabled agent or one that is gone, nor by a run that rests at a limit.
        const admitted = yield* Effect.result(admission.places(context.agentId))
        if (
          Result.isFailure(admitted) &&
          (admitted.failure.reason !== "pendingRuns" || (yield* runs.restsAtLimit(context.name)))
        )
          return yield* admitted.failure
        const agent = yield* agents.get(context.agentId)
        if (!agent) return yield* Effect.die(new Error(`Agent ${context.agentId} is gone while it is held`))
        // A run that a limit has stopped goes on with what is said; nobody would answer it else.
        const isResumed = Result.isSuccess(admitted) && (yield* runs.resumeOn(context.name))
        yield* keep
        if (isResumed) return
        const isQueued = yield* runs.queueOn(
          chainRoot((yield* ids.next) as RunId, agent, {
            contextName: context.name,
            trigger: { type: "context" },
            userId: by
          })
        )
        // A run that is at work on the context already answers the message and needs no place.
        if (isQueued && Result.isFailure(admitted)) return yield* admitted.failure
        // A limit stopped it between the look for such a run and the lock of its log: it goes on, or the message is refused.
        if (!isQueued && (yield* runs.restsAtLimit(context.name))) return yield* outpaced
      })

      const interrupt = Effect.fn("Triggers.interrupt")(function* (
        { isOfBacktest, name }: ContextHead,
        by: UserId
      ) {
        if (isOfBacktest) return yield* new InterruptRefused({ reason: "ofBacktest" })
        // The run is held before the log, as whoever answers holds them: it cannot go to rest in between.
        const resting = yield* runs.holdResting(name)
        const { openTurnNumber } = yield* contexts.lock(name)
        if (openTurnNumber === null) return yield* new InterruptRefused({ reason: "noTurn" })
        const since = yield* contexts.read(name, openTurnNumber, agentLimits.logPageEvents)
        if (since.some(({ type }) => type === "InterruptRequestedEvent"))
          return yield* new InterruptRefused({ reason: "underWay" })
        yield* contexts.append(name, [{ type: "InterruptRequestedEvent", by }])
        if (resting) yield* runs.wake(resting.id, resting.reason)
        return yield* switches.find
      })

      const look = (projectId: ProjectId, id: RunId) => database.inProject(projectId, runs.get(id))

      const settled = Effect.fn("Triggers.settled")(function* (projectId: ProjectId, id: RunId) {
        const mailbox = yield* wakeUps.listen(`run:${id}`)
        const patiently = yield* makePatience(runLimits.triggerWaitMs)
        const looked = patiently(look(projectId, id))
        const atRest = Effect.gen(function* () {
          while (true) {
            const run = yield* looked
            if (!run || isAtRest(run)) return run
            yield* nextWakeUp(mailbox, runLimits.callerLookMs)
          }
        })
        const seen = yield* Effect.timeoutOption(atRest, runLimits.triggerWaitMs)
        return Option.isSome(seen) ? seen.value : yield* looked
      }, Effect.scoped)

      return Triggers.of({ byHand, byEvent, interrupt, look, seen: runs.get, settled })
    })
  )
}

/** An event with the person who adds it: the one of the request (S003-R44). */
const addedBy = <E extends NewEvent>(event: E, userId: UserId): E & { readonly userId: UserId } => ({
  ...event,
  userId
})
