/**
 * Ends runs from outside: a person cancels one, its time is over, or nobody is left to work on it.
 *
 * The run's row decides against completion, once; its log is closed in the same
 * transaction. An actor that is still at work finds its token gone.
 */
import type { ReducedContext } from "@tropism/domain/context"
import type { ContextName, NewEvent } from "@tropism/domain/context-event"
import type { ProjectId, RunId } from "@tropism/domain/ids"
import { Context, Effect, Layer, Option } from "effect"
import { Agents } from "../agents/agents.ts"
import { Contexts } from "../contexts/contexts.ts"
import { Database, type ProjectTransaction } from "../database/database.ts"
import { Ids } from "../ids.ts"
import { share } from "../outbox/notifier.ts"
import { makeAbortedCalls } from "../tools/tool-calls.ts"
import type { RunNotInState } from "./fencing.ts"
import { WorkerLiveness } from "./liveness.ts"
import { StuckAfterMs } from "./processing-log.ts"
import { type Cancellation, Runs } from "./run-store.ts"
import { emptiedSentence, softStopSentences, summaryOf } from "./run-texts.ts"
import { type FailedRun, chainRoot } from "./run-types.ts"
import {
  type Closing,
  closingEvents,
  type Failed,
  failedEnd,
  lastWordsOf,
  turnClosing,
  durationMs
} from "./stopping.ts"

export class RunCancellation extends Context.Service<
  RunCancellation,
  {
    /** Cancels a run that has not ended and keeps all that it said so far, in order, as its summary (S002-R17). */
    readonly cancel: (
      run: { readonly id: RunId; readonly contextName: string },
      cancellation: Cancellation
    ) => Effect.Effect<void, RunNotInState, ProjectTransaction>
    /** Pauses the runs of a project whose time and grace are over, whoever works on them, and answers how many there were (S002-R29, R30). */
    readonly timeOut: (projectId: ProjectId) => Effect.Effect<number>
    /** Cancels the queued runs that nobody has begun and whose entries are gone, as a purge takes them; one that is being claimed begins. */
    readonly cancelEmptied: Effect.Effect<void, never, ProjectTransaction>
    /** Fails the runs of a project whose workers went silent too often, each for itself: one that cannot be failed keeps nobody from anything. */
    readonly giveUp: (projectId: ProjectId) => Effect.Effect<void>
    /** The runs at work of which nothing comes for too long, and those on which nobody is at work for as long, where this server could have taken them up all that time. */
    readonly stuck: Effect.Effect<ReadonlyArray<RunId>, never, ProjectTransaction>
    /** Fails such a run and abandons its entries, where it is stuck still; answers how many runs that were (S000-R19). */
    readonly abandon: (id: RunId) => Effect.Effect<number, never, ProjectTransaction>
  }
>()("@tropism/server/run/RunCancellation") {
  static readonly layer = Layer.effect(
    RunCancellation,
    Effect.gen(function* () {
      const database = yield* Database
      const runs = yield* Runs
      const contexts = yield* Contexts
      const attendance = yield* WorkerLiveness
      const stuckAfterMs = yield* StuckAfterMs
      const { answerLate } = yield* makeLateMessages
      const { recording } = yield* makeAbortedCalls

      /** Ends what is open in a log. */
      const close = Effect.fnUntraced(function* (
        { contextName, id }: { readonly id: RunId; readonly contextName: string },
        eventsFor: (context: ReducedContext) => ReadonlyArray<NewEvent>
      ) {
        const name = contextName as ContextName
        const context = yield* contexts.load(name)
        const events = eventsFor(context)
        yield* contexts.append(name, events, yield* recording(id, context.pendingCalls, events))
        return context
      })

      const cancel = Effect.fn("RunCancellation.cancel")(function* (
        run: { readonly id: RunId; readonly contextName: string },
        cancellation: Cancellation
      ) {
        const name = run.contextName as ContextName
        // The run first and then its log, as every attempt takes them: else the two would wait for each other.
        const partialText = yield* runs.holdOpen(run.id)
        yield* contexts.lock(name)
        const { chars, texts } = yield* runs.saidBy(run.id, name)
        const said = [...texts, partialText].filter((text) => text !== "").join("\n\n")
        yield* runs.cancel(run.id, summaryOf(said, chars), cancellation)
        const closing: Closing = { type: "interrupted", reason: "cancelled", partialText }
        yield* close(run, (context) => closingEvents(run, context, closing))
      })

      /** Ends the turn as its actor would have: with the stop that was not said yet, unless it was answered or a person ended it. */
      const pauseOvertime = Effect.fnUntraced(function* ({
        contextName,
        id
      }: Pick<FailedRun, "id" | "contextName">) {
        const partialText = yield* runs.holdOvertime(id)
        yield* contexts.lock(contextName)
        const context = yield* contexts.load(contextName)
        const stop = context.run.id === id ? Option.getOrUndefined(context.run.softStop) : undefined
        const reason = stop?.reason ?? "timeout"
        const said = partialText === "" ? lastWordsOf({ id }, context) : partialText
        const isAnswered = context.isAnswered && context.pendingCalls.length === 0
        const isStopMissing =
          stop === undefined &&
          !isAnswered &&
          !context.isInterruptRequested &&
          Option.isSome(context.agentTurnStartedAtEventId)
        const closing: Closing = isAnswered
          ? { type: "completed", durationMs: yield* durationMs(context) }
          : {
              type: "interrupted",
              reason: context.isInterruptRequested ? "user" : reason,
              partialText
            }
        const stopping: NewEvent = {
          type: "SoftStopEvent",
          reason,
          runId: id,
          content: softStopSentences[reason]
        }
        const events = [
          ...(isStopMissing ? [stopping] : []),
          ...closingEvents({ id, contextName }, context, closing)
        ]
        yield* contexts.append(contextName, events, yield* recording(id, context.pendingCalls, events))
        yield* runs.timeOut(id, reason, summaryOf(said))
        // What was said meanwhile takes it up again, as where its own attempt pauses it.
        if (context.isTurnDue) yield* runs.resumeOn(contextName)
      })

      const timeOut = Effect.fn("RunCancellation.timeOut")(function* (projectId: ProjectId) {
        const found = yield* database.inProject(projectId, runs.overtime)
        for (const run of found)
          yield* database.inProject(
            projectId,
            // Its attempt was quicker.
            Effect.catchTag(pauseOvertime(run), "RunNotInState", () => Effect.void)
          )
        return found.length
      })

      const cancelEmptied = Effect.gen(function* () {
        // They are held, so they are as they were found.
        for (const run of yield* runs.holdEmptied)
          yield* Effect.orDie(cancel(run, { because: emptiedSentence }))
      })

      /** Closes the logs of runs that have failed, which are held, and keeps what they said last where nothing newer is known. */
      const closeAll = Effect.fnUntraced(function* (failed: ReadonlyArray<FailedRun>) {
        for (const run of failed) {
          const closing: Failed = {
            type: "failed",
            error: run.errorMessage,
            ...(run.failureReason === "noWorker" ? {} : { reason: run.failureReason })
          }
          const context = yield* close(run, (found) => turnClosing(found, closing))
          const said = summaryOf(lastWordsOf(run, context))
          if (run.summary === null && said !== "") yield* runs.summarize(run.id, said)
          const isAnsweredLate = yield* answerLate(run, context)
          yield* contexts.append(run.contextName, failedEnd(run, context, closing, isAnsweredLate))
        }
      })

      const giveUp = Effect.fn("RunCancellation.giveUp")(function* (projectId: ProjectId) {
        for (const id of yield* database.inProject(projectId, runs.spent))
          yield* share(
            "Giving up runs",
            projectId,
            database.inProject(projectId, Effect.as(Effect.flatMap(runs.giveUp(id), closeAll), 1))
          )
      })

      // Take-over comes first: what nobody could have taken up is not stuck.
      const stuck = Effect.flatMap(attendance.hasLasted(stuckAfterMs), runs.stuck)

      const abandon = Effect.fn("RunCancellation.abandon")((id: RunId) =>
        Effect.map(Effect.tap(runs.abandon(id), closeAll), ({ length }) => length)
      )

      return RunCancellation.of({ cancel, timeOut, cancelEmptied, giveUp, stuck, abandon })
    })
  )
}

// Queues the run that answers what was said too late for a run that has failed.
//
// A failure answers what its turn had read. What was said since that turn began was
// kept without a run of its own, because one was at work; so the transaction that
// fails it queues the next, under the log's lock: whoever speaks later finds that one.
// Nobody answers for an agent that is disabled, this failure having been the last that
// it may have: then the failure does.

export const makeLateMessages = Effect.gen(function* () {
  const agents = yield* Agents
  const ids = yield* Ids
  const runs = yield* Runs

  /** Queues a run for what a failed run had not read, and says whether it did; the context is as the failure found it, and its log is held. */
  const answerLate = Effect.fnUntraced(function* (run: FailedTurn, context: ReducedContext) {
    const { agentId, backtestId, contextName, userId } = run
    const isTurnOpen = Option.isSome(context.agentTurnStartedAtEventId)
    // What was said before a run's first turn is answered by its failure: else one would fail after the other for ever.
    if (backtestId !== null || !context.isAsked || !(isTurnOpen || context.run.id === run.id)) return false
    const agent = yield* agents.get(agentId)
    if (agent?.enabled !== true) return false
    const { next, now } = context.speakers
    const [first = null] = isTurnOpen ? next : [...now, ...next]
    yield* runs.queueOn(
      chainRoot((yield* ids.next) as RunId, agent, {
        contextName,
        trigger: { type: "context" },
        userId: first ?? userId
      })
    )
    return true
  })

  return { answerLate }
})

type FailedTurn = Pick<FailedRun, "id" | "agentId" | "backtestId" | "contextName" | "userId">
