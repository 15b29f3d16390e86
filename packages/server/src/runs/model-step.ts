/**
 * Executes one step: makes the model request and stores the answer.
 *
 * No transaction is open during the request. An answer that leaves nothing to do completes the run in the transaction that stores it; a
 * request that exceeds the run's deadline is aborted.
 */
import { fold, promptOf, type ReducedContext } from "@tropism/domain/context"
import type { NewEvent } from "@tropism/domain/context-event"
import { addUsage } from "@tropism/domain/run"
import { isContinued, keptFinishReason } from "@tropism/domain/unfinished"
import { Clock, Effect, Exit, Option, Queue } from "effect"
import { endOf, planAppend } from "../contexts/appending.ts"
import { TextDeltas } from "../contexts/text-deltas.ts"
import { CrashPoint } from "../crash-point.ts"
import { runLimits } from "../limits.ts"
import type { ModelTry, OfferedTool } from "../models/model-request.ts"
import { withinLimit } from "../tools/offered-tools.ts"
import { type StepUse, makeRunLog } from "./appends.ts"
import { type AttemptContext, decideNow, equipmentNow, graceEndOf, isLastTurn } from "./attempt-context.ts"
import { prefetchedBudgets } from "./budgets.ts"
import { type Heard, makeGuard } from "./guard.ts"
import { makeInterruption } from "./interruption.ts"
import { makeShownFiles } from "./message-files.ts"
import { askModel, type Listener, type Offer, stepsOf } from "./model-answer.ts"
import { type AskedStep, ModelCalls } from "./model-calls.ts"
import { Runs } from "./run-store.ts"
import { makeRunTelemetry } from "./run-telemetry.ts"
import { summaryOf } from "./run-texts.ts"
import type { ClaimedRun } from "./run-types.ts"
import { type Closing, closingEvents, durationMs, makeStopping } from "./stopping.ts"

export const makeModelStep = Effect.gen(function* () {
  const runs = yield* Runs
  const words = yield* TextDeltas
  const modelCalls = yield* ModelCalls
  const observing = yield* makeRunTelemetry
  const { append, appendAndComplete } = yield* makeRunLog
  const { withFiles } = yield* makeShownFiles
  const { interrupt, pause, restSpent, softStop } = yield* makeStopping
  const { broken } = yield* makeInterruption
  const guarding = yield* makeGuard

  const requestModel = Effect.fn("Actor.requestModel")(function* (
    bench: AttemptContext,
    context: ReducedContext,
    withTools: boolean
  ) {
    const { deadlineMs, run } = bench
    const { guard, model, tools } = yield* equipmentNow(bench, context)
    const spent = yield* runs.mayAsk(run, prefetchedBudgets.get(context))
    if (spent) return yield* restSpent(run, context, spent)
    yield* CrashPoint.hit("run.beforeModel")
    const partial = yield* makePartialText((text) => runs.keepPartial(run, text))
    const tries: Array<ModelTry> = []
    const offered = withinLimit(tools.offered, model.toolsMax, context.toolsInUse)
    const step = stepOf(run, context, offered, tries)
    const aside = guarding.asideFor(run, context, guard)
    const keepUnanswered = Effect.andThen(
      modelCalls.keepUnanswered(step),
      aside ? modelCalls.keepUnanswered(aside) : Effect.void
    )
    const prompt = promptOf(context)
    const messages = yield* withFiles(run.projectId, prompt)
    // Offer the tools to the end once the model has called some: certain providers reject calls of tools that are not listed.
    const offer: Offer = { messages, tools: offered, mayCall: withTools }
    const asked = guarding
      .hear(guard, aside, step, context, (showing) => {
        const listener: Listener = { heard: partial.heard, showing, tried: (each) => tries.push(each) }
        return askModel(model, run, context, offer, listener)
      })
      .pipe(
        Effect.provideService(TextDeltas, words),
        Effect.tapErrorTag("ModelFailure", () => keepUnanswered),
        Effect.raceFirst(partial.keep)
      )
    const stop = context.run.id === run.id ? Option.getOrUndefined(context.run.softStop) : undefined
    const endMs = stop ? graceEndOf(bench, context) : deadlineMs
    // A stopped run does not wait for its provider: its last request is aborted like one that takes too long.
    const bounded = within(asked, endMs)
    const heard = (
      stop?.reason === "timeout" ? Effect.catchIf(bounded, isProviderAway, () => Effect.succeedNone) : bounded
    ).pipe(
      Effect.onExit((exit) =>
        observing.asked(step, {
          messages: prompt,
          answer: Exit.isSuccess(exit) ? Option.getOrUndefined(exit.value)?.answer : undefined
        })
      )
    )
    // A stopped run ignores new messages: this is its last answer.
    const outcome = yield* stop ? heard : Effect.raceFirst(heard, broken(run, context))
    yield* CrashPoint.hit("run.afterModel")
    if (outcome === "message" || outcome === "user") {
      yield* keepUnanswered
      return yield* interrupt(run, context, outcome, partial.text())
    }
    if (Option.isSome(outcome)) return yield* keep(bench, context, step, aside, outcome.value)
    yield* keepUnanswered
    const partialText = partial.text()
    return stop
      ? yield* pause(run, context, stop.reason, partialText)
      : yield* softStop(run, context, "timeout", partialText)
  })

  /** Stores an answer and counts its step; an answer without tool calls completes the run in the same transaction. */
  const keep = Effect.fnUntraced(function* (
    bench: AttemptContext,
    context: ReducedContext,
    step: AskedStep,
    aside: AskedStep | undefined,
    { answer, verdict }: Heard
  ) {
    const { run } = bench
    const continues = context.run.id === run.id && isContinued(context.run.unfinished)
    const finishReason = keptFinishReason(answer.finishReason, {
      content: answer.text,
      toolCalls: answer.toolCalls,
      continues,
      isScripted: answer.model.startsWith("scripted:")
    })
    const said: NewEvent = {
      type: "AssistantMessageEvent",
      content: answer.text,
      toolCalls: answer.toolCalls,
      runId: run.id,
      model: answer.model,
      usage: answer.usage,
      ...(answer.leftOut === undefined ? {} : { leftOut: answer.leftOut }),
      ...(answer.parts === undefined ? {} : { parts: answer.parts }),
      ...(finishReason === undefined ? {} : { finishReason }),
      ...(continues ? { continues } : {})
    }
    const told = verdict ? [verdict.event, said] : [said]
    const spent: StepUse = {
      usage: verdict ? addUsage(verdict.event.usage, answer.usage) : answer.usage,
      model: answer.model,
      finishReason: answer.finishReason,
      costMicros: (verdict?.costMicros ?? 0) + (answer.costMicros ?? 0)
    }
    const recording = (eventsBehind: number) =>
      modelCalls.recording(
        step,
        { eventsBehind },
        aside && verdict ? { asked: aside, answer: { eventsBehind: eventsBehind + 1 } } : undefined
      )
    const { events } = yield* planAppend(run.contextName, endOf(context), told)
    const after = fold(events, context)
    const next = yield* decideNow(bench, after, context.currentTurnNumber)
    if (next.type === "completeTurn" && !after.isTurnDue && isLastTurn(bench, after)) {
      yield* CrashPoint.hit("run.beforeComplete")
      const closing: Closing = { type: "completed", durationMs: yield* durationMs(after) }
      const last = closingEvents(run, after, closing)
      const isOver = yield* appendAndComplete(run, context, [...told, ...last], {
        summary: summaryOf(next.text),
        parts: { use: spent, ...recording(last.length) }
      })
      yield* CrashPoint.hit("run.afterComplete")
      if (isOver) {
        modelCalls.recorded(step)
        return undefined
      }
    }
    const kept = yield* append(run, context, told, { use: spent, ...recording(0) })
    modelCalls.recorded(step)
    yield* CrashPoint.hit("run.afterStep")
    return kept
  })

  return { requestModel }
})

const isProviderAway = (failure: { readonly _tag: string }): boolean =>
  failure._tag === "ModelFailure" && "waitsFor" in failure && failure.waitsFor !== undefined

/** Describes a request that is about to be made; its tries are added while it runs. */
const stepOf = (
  run: ClaimedRun,
  context: ReducedContext,
  tools: ReadonlyArray<OfferedTool>,
  tries: ReadonlyArray<ModelTry>
): AskedStep => ({
  run,
  step: stepsOf(run, context) + 1,
  afterEvent: context.nextEventNumber - 1,
  tools,
  tries
})

/** Aborts an effect that is still running at `endMs`. */
export const within = <A, E, R>(effect: Effect.Effect<A, E, R>, endMs: number | null) =>
  endMs === null
    ? Effect.map(effect, Option.some)
    : Effect.flatMap(Clock.currentTimeMillis, (now) => Effect.timeoutOption(effect, Math.max(0, endMs - now)))

// Stores the partial text of an answer while it streams.
//
// A cancellation from outside, on any server, reads the text from the run's row. An attempt that pauses its own run uses the text in
// memory; the text of an earlier attempt is requested again and is not a summary. The first piece is stored almost at once and the rest at
// intervals. A completed answer is never written here, because its step stores it.

const makePartialText = Effect.fnUntraced(function* <E>(write: (text: string) => Effect.Effect<void, E>) {
  let text = ""
  let kept = ""
  const grown = yield* Queue.sliding<void>(1)

  const keepNow = Effect.suspend(() => {
    const next = text
    if (next === kept) return Effect.void
    return write(next).pipe(
      Effect.andThen(
        Effect.sync(() => {
          kept = next
        })
      ),
      // Only the display depends on this write: the request continues, and the next write stores the text.
      Effect.catchDefect((defect) =>
        Effect.map(
          Effect.logDebug("The text of an answer that still comes could not be kept", defect),
          () => {
            Queue.offerUnsafe(grown, undefined)
          }
        )
      )
    )
  })

  /** Stores received text until interrupted; fails when the attempt has lost its run, and survives database outages. */
  const keep: Effect.Effect<never, E> = Queue.take(grown).pipe(
    Effect.andThen(Effect.sleep(runLimits.partialTextDelayMs)),
    Effect.andThen(Effect.uninterruptible(keepNow)),
    // Each write stores the whole text, so a long text is written less often to limit the bytes per second.
    Effect.andThen(
      Effect.suspend(() => Effect.sleep(intervalMs(kept.length) - runLimits.partialTextDelayMs))
    ),
    Effect.forever
  )

  return {
    /** Takes the whole text so far. */
    heard: (whole: string): void => {
      text = whole
      Queue.offerUnsafe(grown, undefined)
    },
    text: (): string => text,
    keep
  }
})

const intervalMs = (chars: number): number =>
  runLimits.partialTextIntervalMs * Math.max(1, chars / runLimits.partialTextChars)
