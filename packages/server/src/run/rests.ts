/**
 * The acts by which a run comes to rest, or is told that it should.
 *
 * Flow: graph → outbox → dispatch → **run** → tool → task
 *
 * The last events of a run and the change of its state are one transaction. A
 * run in which somebody spoke since the log was read goes on instead: then the
 * answer is the state after what was said.
 */
import type { ReachedCap } from "@tropism/domain/chain"
import type { ReducedContext } from "@tropism/domain/context"
import type { NewEvent, SoftStopReason, TurnFailure } from "@tropism/domain/context-event"
import { isUnderWay } from "@tropism/domain/decide"
import type { WaitsFor } from "@tropism/domain/event-base"
import { Clock, Effect, Option } from "effect"
import { CrashPoint } from "../crash-point.ts"
import type { ProjectTransaction } from "../database/database.ts"
import type { ClaimedRun } from "./claimed-run.ts"
import { type Closing, closingEvents, lastWordsOf, nextSession } from "./closing.ts"
import type { RunNotInState } from "./holding.ts"
import type { WaitReason } from "./outcomes.ts"
import { Runs } from "./runs.ts"
import { refusalSentences, softStopSentences, summaryOf, underWay } from "./sentences.ts"
import { makeWriting, type Preparation } from "./writing.ts"

/** The acts by which a run ends with its last append. */
const makeLastActs = Effect.gen(function* () {
  const { appendAndComplete, appendAndEnd, catchUp } = yield* makeWriting

  /** Ends the run by its last append, unless somebody spoke since the log was read: then the answer is how it goes on. */
  const over = Effect.fnUntraced(function* <E, R>(
    run: ClaimedRun,
    context: ReducedContext,
    ending: Effect.Effect<boolean, E, R>
  ) {
    yield* CrashPoint.hit("run.beforeComplete")
    const isOver = yield* ending
    yield* CrashPoint.hit("run.afterComplete")
    return isOver ? undefined : yield* catchUp(run, context)
  })

  const complete = Effect.fn("Actor.complete")(function* (
    run: ClaimedRun,
    context: ReducedContext,
    summary: string
  ) {
    const last = closingEvents(run, context, { type: "completed", durationMs: yield* durationMs(context) })
    return yield* over(run, context, appendAndComplete(run, context, last, { summary }))
  })

  const finish = Effect.fn("Actor.finish")(
    (
      run: ClaimedRun,
      context: ReducedContext,
      closing: Closing,
      end: Effect.Effect<void, RunNotInState, ProjectTransaction>,
      preparation?: Preparation
    ) =>
      over(run, context, appendAndEnd(run, context, closingEvents(run, context, closing), end, preparation))
  )

  return { complete, finish }
})

const waitReasons: Readonly<Record<WaitsFor, WaitReason>> = {
  run: "subAgents",
  person: "question",
  client: "toolResult"
}

export const makeRests = Effect.gen(function* () {
  const runs = yield* Runs
  const { append, appendAndEnd, catchUp } = yield* makeWriting
  const { complete, finish } = yield* makeLastActs

  const softStop = (run: ClaimedRun, context: ReducedContext, reason: SoftStopReason, partialText: string) =>
    append(
      run,
      context,
      [
        {
          type: "SoftStopEvent",
          reason,
          runId: run.id,
          content: softStopSentences[reason],
          ...(partialText === "" ? {} : { partialText })
        }
      ],
      reason === "timeout" ? { stop: "timedOut" } : {}
    )

  /**
   * Ends the open turn and not the run: a message or a person broke it off, or its actor died, and with it its session.
   *
   * **Details** What was asked for and not made ends with its turn, in the same append; the calls of an actor that died are for the next.
   */
  const interrupt = (
    run: ClaimedRun,
    context: ReducedContext,
    reason: "crash" | "message" | "user",
    partialText: string,
    isOrphaned = false
  ) =>
    append(
      run,
      context,
      [
        ...(reason === "crash" ? [] : abandonedCalls(context)),
        {
          type: "AgentTurnInterruptedEvent",
          turnNumber: context.currentTurnNumber,
          reason,
          ...(partialText === "" ? {} : { partialText })
        },
        ...(isOrphaned ? nextSession(context) : [])
      ],
      partialText === "" ? {} : { stop: "brokenOff" }
    )

  /** Lets the run rest at a limit; what was said while it made its last request takes it up again at once, as what is said later does. */
  const pause = Effect.fnUntraced(function* (
    run: ClaimedRun,
    context: ReducedContext,
    reason: SoftStopReason | "budget",
    partialText = ""
  ) {
    const said = partialText === "" ? lastWordsOf(run, context) : partialText
    const rest = runs.pause(run, reason, summaryOf(said))
    const end = context.isTurnDue ? Effect.andThen(rest, runs.resumeOn(run.contextName)) : rest
    return yield* finish(run, context, { type: "interrupted", reason, partialText }, Effect.asVoid(end))
  })

  /** Lets the run rest because nothing is left to spend on its next request. */
  const restSpent = (run: ClaimedRun, context: ReducedContext, { reason }: ReachedCap) =>
    finish(
      run,
      context,
      { type: "interrupted", reason: "budget" },
      runs.pause(run, "budget", summaryOf(lastWordsOf(run, context)), reason)
    )

  /** Lets the run rest until others bring the outcomes that it waits for, unless one has come since the log was read. */
  const wait = Effect.fnUntraced(function* (run: ClaimedRun, context: ReducedContext, what: WaitsFor) {
    const end = runs.wait(run, waitReasons[what])
    const isOver = yield* appendAndEnd(run, context, [], end)
    yield* CrashPoint.hit("run.afterWait")
    return isOver ? undefined : yield* catchUp(run, context)
  })

  const fail = (run: ClaimedRun, context: ReducedContext, error: string, reason: TurnFailure) =>
    finish(
      run,
      context,
      { type: "failed", error, reason },
      runs.fail(run, reason, error, summaryOf(lastWordsOf(run, context))),
      { first: runs.holdToFail(run) }
    )

  return { complete, finish, interrupt, softStop, pause, restSpent, wait, fail }
})

/** The ends of the calls that nobody has made, or whose maker died. */
const abandonedCalls = (context: ReducedContext): ReadonlyArray<NewEvent> =>
  context.pendingCalls.map(({ id, name }) => ({
    type: "ToolCallFailedEvent",
    callId: id,
    tool: name,
    error: isUnderWay(context, id) ? underWay : { error: refusalSentences.abandoned, reason: "abandoned" }
  }))

/** How long the open turn has taken. */
export const durationMs = Effect.fnUntraced(function* (context: ReducedContext) {
  const now = yield* Clock.currentTimeMillis
  return Option.match(context.agentTurnStartedAt, {
    onNone: () => 0,
    onSome: (start) => Math.max(0, now - new Date(start).getTime())
  })
})
