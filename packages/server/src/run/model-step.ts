/**
 * One step: asks the model, and keeps what it said.
 *
 * Flow: graph → outbox → dispatch → **run** → tool → task
 *
 * No transaction is open while the model speaks. An answer after which nothing
 * is left to do ends the run in the transaction that keeps it; a request that
 * takes longer than the run may is aborted.
 */
import { fold, promptOf, type ReducedContext } from "@tropism/domain/context"
import type { NewEvent } from "@tropism/domain/context-event"
import { isContinued, keptFinishReason } from "@tropism/domain/unfinished"
import { addUsage } from "@tropism/domain/run"
import { Clock, Effect, Exit, Option } from "effect"
import { endOf, planAppend } from "../agent/appending.ts"
import { PassingWords } from "../agent/passing-words.ts"
import { CrashPoint } from "../crash-point.ts"
import type { ModelTry, OfferedTool } from "../model/model-request.ts"
import { withinLimit } from "../tool/find-tools.ts"
import { foresights } from "./asking.ts"
import { askModel, type Listener, type Offer } from "./answer.ts"
import { type Bench, decideNow, equipmentNow, graceEndOf, isLastTurn } from "./bench.ts"
import { makeBreakingIn } from "./breaking-in.ts"
import type { ClaimedRun } from "./claimed-run.ts"
import { type Closing, closingEvents } from "./closing.ts"
import { type Heard, makeGuarding } from "./guarding.ts"
import { type AskedStep, ModelCalls } from "./model-calls.ts"
import { makePartialText } from "./partial-text.ts"
import { makeObserving } from "./observing.ts"
import { durationMs, makeRests } from "./rests.ts"
import { Runs } from "./runs.ts"
import { summaryOf } from "./sentences.ts"
import { makeShownFiles } from "./shown-files.ts"
import type { StepUse } from "./run-appends.ts"
import { stepsOf } from "./step-count.ts"
import { makeWriting } from "./writing.ts"

export const makeModelStep = Effect.gen(function* () {
  const runs = yield* Runs
  const words = yield* PassingWords
  const modelCalls = yield* ModelCalls
  const observing = yield* makeObserving
  const { append, appendAndComplete } = yield* makeWriting
  const { withFiles } = yield* makeShownFiles
  const { interrupt, pause, restSpent, softStop } = yield* makeRests
  const { broken } = yield* makeBreakingIn
  const guarding = yield* makeGuarding

  const requestModel = Effect.fn("Actor.requestModel")(function* (
    bench: Bench,
    context: ReducedContext,
    withTools: boolean
  ) {
    const { deadlineMs, run } = bench
    const { guard, model, tools } = yield* equipmentNow(bench, context)
    const spent = yield* runs.mayAsk(run, foresights.get(context))
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
    // A model that has called tools is shown them to the end: some providers refuse calls of tools that nobody names.
    const offer: Offer = { messages, tools: offered, mayCall: withTools }
    const asked = guarding
      .hear(guard, aside, step, context, (showing) => {
        const listener: Listener = { heard: partial.heard, showing, tried: (each) => tries.push(each) }
        return askModel(model, run, context, offer, listener)
      })
      .pipe(
        Effect.provideService(PassingWords, words),
        Effect.tapErrorTag("ModelFailure", () => keepUnanswered),
        Effect.raceFirst(partial.keep)
      )
    const stop = context.run.id === run.id ? Option.getOrUndefined(context.run.softStop) : undefined
    const endMs = stop ? graceEndOf(bench, context) : deadlineMs
    // Whose time is up waits for no provider: its last request is over like one that takes too long.
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
    // Whoever was asked to stop hears nobody any more: this is the last answer.
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

  /** Keeps an answer and counts its step; one that asks for no tool ends the run in the same transaction. */
  const keep = Effect.fnUntraced(function* (
    bench: Bench,
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

/** The request that is about to be made; its tries join while it is. */
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

/** Aborts what is not through by an instant. */
export const within = <A, E, R>(effect: Effect.Effect<A, E, R>, endMs: number | null) =>
  endMs === null
    ? Effect.map(effect, Option.some)
    : Effect.flatMap(Clock.currentTimeMillis, (now) => Effect.timeoutOption(effect, Math.max(0, endMs - now)))
