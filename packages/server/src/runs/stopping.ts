/**
 * The acts by which a run comes to rest, or is told that it should.
 *
 * The last events of a run and the change of its state are one transaction. A
 * run in which somebody spoke since the log was read goes on instead: then the
 * answer is the state after what was said.
 */
import type { ReachedCap } from "@tropism/domain/chain"
import type { ReducedContext } from "@tropism/domain/context"
import type { NewEvent, SoftStopReason, TurnFailure } from "@tropism/domain/context-event"
import { nextStepOf } from "@tropism/domain/context-flow"
import { isUnderWay } from "@tropism/domain/decide"
import type { WaitsFor } from "@tropism/domain/event-base"
import { Clock, Effect, Option } from "effect"
import { CrashPoint } from "../crash-point.ts"
import type { ProjectTransaction } from "../database/database.ts"
import { makeRunLog, type Preparation } from "./appends.ts"
import type { RunNotInState } from "./fencing.ts"
import { type WaitReason, Runs } from "./run-store.ts"
import { refusalSentences, softStopSentences, summaryOf, underWay } from "./run-texts.ts"
import type { ClaimedRun } from "./run-types.ts"

/** The acts by which a run ends with its last append. */
const makeLastActs = Effect.gen(function* () {
  const { appendAndComplete, appendAndEnd, catchUp } = yield* makeRunLog

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

export const makeStopping = Effect.gen(function* () {
  const runs = yield* Runs
  const { append, appendAndEnd, catchUp } = yield* makeRunLog
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

// The last words of a run.
//
// Every call has an outcome, every turn an end and every session an end, however
// the run ended: whoever folds the log later, or goes on with the same context,
// finds nothing half open.

/** How a run ends. */
export type Closing =
  | {
      readonly type: "interrupted"
      readonly reason: "cancelled" | "stepLimit" | "timeout" | "budget" | "forked" | "user"
      /** What the model had said of an answer that was broken off. */
      readonly partialText?: string | undefined
    }
  | Failed
  | { readonly type: "completed"; readonly durationMs: number }

/** A run that fails. */
export interface Failed {
  readonly type: "failed"
  readonly error: string
  /** Absent where its workers died, and its session with them. */
  readonly reason?: TurnFailure
}

/** What a run has said last in its log; a conversation may hold other runs' words. */
export const lastWordsOf = (
  run: { readonly id: string },
  { lastText, run: { id } }: ReducedContext
): string => (id === run.id ? lastText : "")

/** Whether a log is the run's own, and over with it; that of a conversation goes on. */
const hasOwnLog = ({ contextName, id }: LogOfRun): boolean => contextName === `run-${id}`

/** A run and the context that it works in. */
export interface LogOfRun {
  readonly id: string
  readonly contextName: string
}

/** The events that close whatever is open when a run ends or rests at a limit; the session of a conversation goes on (S004-R41). */
export const closingEvents = (
  run: LogOfRun,
  context: ReducedContext,
  closing: Closing
): ReadonlyArray<NewEvent> => [
  ...turnClosing(context, closing),
  ...(context.isSessionOpen && hasOwnLog(run) ? [sessionEnd(false)] : [])
]

/** What is open where a context is forked, closed in the fork's own log, and the session that begins there. */
export const forkClosing = (context: ReducedContext): ReadonlyArray<NewEvent> => [
  ...turnClosing(context, { type: "interrupted", reason: "forked" }),
  ...nextSession(context, false)
]

/** The events that close the open turn and its calls. */
export const turnClosing = (context: ReducedContext, closing: Closing): ReadonlyArray<NewEvent> => [
  ...context.pendingCalls.map((call): NewEvent => ({
    type: "ToolCallFailedEvent",
    callId: call.id,
    tool: call.name,
    error: isUnderWay(context, call.id)
      ? underWay
      : {
          error: Object.hasOwn(context.waitingCalls, call.id)
            ? "The run ended before the outcome of this call came"
            : "The run ended before this call was made",
          reason: "runEnded"
        }
  })),
  ...(Option.isSome(context.agentTurnStartedAtEventId) ? [turnEnd(context.currentTurnNumber, closing)] : [])
]

/**
 * The events behind those that have closed the turn of a run that fails.
 *
 * **Details** What no turn has begun for, and no other run answers, has a turn of
 * its own that fails: people read what became of it where they read the answer.
 */
export const failedEnd = (
  run: LogOfRun,
  context: ReducedContext,
  closing: Failed,
  isAnsweredLate: boolean
): ReadonlyArray<NewEvent> => {
  const { isSessionOpen } = context
  const isUnanswered = !isAnsweredLate && isTurnMissing(context)
  const turnNumber = context.currentTurnNumber + 1
  const isCrash = isSessionOpen && closing.reason === undefined
  return [
    ...(isUnanswered
      ? [{ type: "AgentTurnStartedEvent", turnNumber } as const, turnEnd(turnNumber, closing)]
      : []),
    ...(isCrash || ((isUnanswered || isSessionOpen) && hasOwnLog(run)) ? [sessionEnd(isCrash)] : [])
  ]
}

/** Whether somebody waits for a turn that has not begun: for a first one, or for that of the next step. */
const isTurnMissing = (context: ReducedContext): boolean =>
  context.isTurnDue || (Option.isNone(context.agentTurnStartedAtEventId) && nextStepOf(context) !== undefined)

/** The session of the actor that comes now; where one that died has left its own open, that ends first (S004-R40…R42). */
export const nextSession = ({ isSessionOpen }: ReducedContext, isCrash = true): ReadonlyArray<NewEvent> => [
  ...(isSessionOpen ? [sessionEnd(isCrash)] : []),
  { type: "SessionStartedEvent" }
]

const sessionEnd = (isCrash: boolean): NewEvent => ({
  type: "SessionEndedEvent",
  ...(isCrash ? { reason: "crash" } : {})
})

const turnEnd = (turnNumber: number, closing: Closing): NewEvent => {
  switch (closing.type) {
    case "completed":
      return { type: "AgentTurnCompletedEvent", turnNumber, durationMs: closing.durationMs }
    case "failed":
      return {
        type: "AgentTurnFailedEvent",
        turnNumber,
        error: closing.error,
        ...(closing.reason === undefined ? {} : { reason: closing.reason })
      }
    case "interrupted":
      return {
        type: "AgentTurnInterruptedEvent",
        turnNumber,
        reason: closing.reason,
        ...(closing.partialText ? { partialText: closing.partialText } : {})
      }
  }
}
