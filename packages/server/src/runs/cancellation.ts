/**
 * Ends runs from outside: cancelled by a person, out of time, or without a worker.
 *
 * The update of the run's row decides the race against completion; the log is closed in the same transaction. An actor that is still
 * running finds its token gone.
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
    /** Cancels a run that has not ended and keeps its text so far, in order, as its summary (S002-R17). */
    readonly cancel: (
      run: { readonly id: RunId; readonly contextName: string },
      cancellation: Cancellation
    ) => Effect.Effect<void, RunNotInState, ProjectTransaction>
    /**
     * Pauses the project's runs whose deadline and grace period have passed, whichever worker holds them, and returns their number
     * (S002-R29, R30).
     */
    readonly timeOut: (projectId: ProjectId) => Effect.Effect<number>
    /** Cancels queued runs that have not begun and whose entries a purge has deleted. A run that is being claimed begins. */
    readonly cancelEmptied: Effect.Effect<void, never, ProjectTransaction>
    /**
     * Fails the project's runs whose workers disappeared too often, each in its own transaction, so one failure does not block the others.
     */
    readonly giveUp: (projectId: ProjectId) => Effect.Effect<void>
    /**
     * Returns the running runs that have made no progress for too long, and those without a worker for as long, if this server had spare
     * capacity all that time.
     */
    readonly stuck: Effect.Effect<ReadonlyArray<RunId>, never, ProjectTransaction>
    /** Fails such a run and abandons its entries if it is still stuck; returns the number of runs (S000-R19). */
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

      /** Ends the open turn and session of a log. */
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
        // Lock the run before its log, in the order of every attempt, to avoid a deadlock.
        const partialText = yield* runs.holdOpen(run.id)
        yield* contexts.lock(name)
        const { chars, texts } = yield* runs.saidBy(run.id, name)
        const said = [...texts, partialText].filter((text) => text !== "").join("\n\n")
        yield* runs.cancel(run.id, summaryOf(said, chars), cancellation)
        const closing: Closing = { type: "interrupted", reason: "cancelled", partialText }
        yield* close(run, (context) => closingEvents(run, context, closing))
      })

      /**
       * Pauses the run as its actor would: appends the stop if it is not in the log yet, unless the turn was answered or a person ended it.
       */
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
        // Messages that arrived meanwhile resume the run, as when its own attempt pauses it.
        if (context.isTurnDue) yield* runs.resumeOn(contextName)
      })

      const timeOut = Effect.fn("RunCancellation.timeOut")(function* (projectId: ProjectId) {
        const found = yield* database.inProject(projectId, runs.overtime)
        for (const run of found)
          yield* database.inProject(
            projectId,
            // The run's own attempt was faster.
            Effect.catchTag(pauseOvertime(run), "RunNotInState", () => Effect.void)
          )
        return found.length
      })

      const cancelEmptied = Effect.gen(function* () {
        // The rows are locked, so they have not changed.
        for (const run of yield* runs.holdEmptied)
          yield* Effect.orDie(cancel(run, { because: emptiedSentence }))
      })

      /** Closes the logs of failed runs, whose rows are locked, and keeps their partial text where the log has nothing newer. */
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

      // Takeover comes first: a run that no worker had capacity for is not stuck.
      const stuck = Effect.flatMap(attendance.hasLasted(stuckAfterMs), runs.stuck)

      const abandon = Effect.fn("RunCancellation.abandon")((id: RunId) =>
        Effect.map(Effect.tap(runs.abandon(id), closeAll), ({ length }) => length)
      )

      return RunCancellation.of({ cancel, timeOut, cancelEmptied, giveUp, stuck, abandon })
    })
  )
}

// Queues a run that answers messages which arrived too late for a run that has failed.
//
// A failure answers the messages that its turn had read. Messages since that turn began were stored without a run of their own, because one
// was running. The transaction that fails the run therefore queues the next one under the log's lock, so a later message finds it. A
// disabled agent gets no new run, including one that this failure disabled; the failure is then the answer.

export const makeLateMessages = Effect.gen(function* () {
  const agents = yield* Agents
  const ids = yield* Ids
  const runs = yield* Runs

  /**
   * Queues a run for the messages that a failed run had not read and returns whether it did. `context` is the state at the failure; the log
   * is locked.
   */
  const answerLate = Effect.fnUntraced(function* (run: FailedTurn, context: ReducedContext) {
    const { agentId, backtestId, contextName, userId } = run
    const isTurnOpen = Option.isSome(context.agentTurnStartedAtEventId)
    // The failure answers messages from before the run's first turn; otherwise runs would fail one after the other without end.
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
