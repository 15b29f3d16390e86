/**
 * Sums up what a window lets go of, before the model is asked with what is left.
 *
 * Flow: graph → outbox → dispatch → **run** → tool → task
 *
 * The summary and the cut are one event, so a crash anywhere leaves either the
 * window as it was, and the request is made again, or the one that is left. A
 * model that fails, or says nothing, costs the context its oldest messages and
 * not the turn: they are let go without a summary.
 */
import type { ReducedContext } from "@tropism/domain/context"
import type { NewEvent } from "@tropism/domain/context-event"
import { noUsage } from "@tropism/domain/run"
import { beginningOf } from "@tropism/domain/text-beginning"
import { Effect, Option, Result } from "effect"
import { CrashPoint } from "../crash-point.ts"
import { runLimits } from "../limits.ts"
import { asideOf, makeAsides } from "./asides.ts"
import { type Bench, equipmentNow } from "./bench.ts"
import { makeBreakingIn } from "./breaking-in.ts"
import { ModelCalls } from "./model-calls.ts"
import { within } from "./model-step.ts"
import { makeRests } from "./rests.ts"
import { Runs } from "./runs.ts"
import { findSummary } from "./summary-prompt.ts"
import { makeWriting } from "./writing.ts"

export const makeSummarizing = Effect.gen(function* () {
  const runs = yield* Runs
  const modelCalls = yield* ModelCalls
  const { ask, keeping } = yield* makeAsides
  const { append, catchUp } = yield* makeWriting
  const { interrupt, restSpent } = yield* makeRests
  const { broken } = yield* makeBreakingIn

  const summarize = Effect.fn("Actor.summarize")(function* (bench: Bench, context: ReducedContext) {
    const { deadlineMs, run } = bench
    const wanted = findSummary(context)
    if (wanted === undefined) return yield* catchUp(run, context)
    const { model } = yield* equipmentNow(bench, context)
    const spent = yield* runs.mayAsk(run)
    if (spent) return yield* restSpent(run, context, spent)
    yield* CrashPoint.hit("run.beforeSummary")
    const aside = asideOf(run, context, "summary")
    const asked = within(ask(aside, model, context, wanted.messages), deadlineMs)
    const outcome = yield* Effect.raceFirst(asked, broken(run, context))
    yield* CrashPoint.hit("run.afterSummary")
    if (outcome === "message" || outcome === "user") {
      yield* modelCalls.keepUnanswered(aside)
      return yield* interrupt(run, context, outcome, "")
    }
    if (Option.isNone(outcome)) {
      yield* modelCalls.keepUnanswered(aside)
      return yield* catchUp(run, context)
    }
    const cut = {
      type: "ContextSummarizedEvent",
      messages: context.droppedMessages + wanted.cut.index,
      runId: run.id
    } as const
    if (Result.isFailure(outcome.value)) {
      yield* modelCalls.keepUnanswered(aside)
      if (outcome.value.failure.waitsFor !== undefined) return yield* outcome.value.failure
      const error = beginningOf(outcome.value.failure.message, runLimits.errorMaxChars)
      const failed: NewEvent = {
        ...cut,
        content: null,
        error,
        model: `${model.provider}:${model.name}`,
        usage: noUsage
      }
      return yield* append(run, context, [failed])
    }
    const answer = outcome.value.success
    const content = beginningOf(answer.text.trim(), wanted.maxChars).toWellFormed()
    const said = content === "" ? { content: null, error: "The model said nothing" } : { content }
    const summarized: NewEvent = { ...cut, ...said, model: answer.model, usage: answer.usage }
    const kept = yield* append(run, context, [summarized], keeping(aside, answer))
    modelCalls.recorded(aside)
    return kept
  })

  return { summarize }
})
