/**
 * Renews the notes of a context, between its turns (S004-F04).
 *
 * Flow: graph → outbox → dispatch → **run** → tool → task
 *
 * The turn is over by then and whoever asked has the answer, so nothing that
 * happens here can harm it. Whether it is due is read from the log: a worker that
 * dies leaves it to the next, and notes that cannot be made are recorded as not
 * made. Somebody who speaks meanwhile comes first.
 */
import type { ReducedContext } from "@tropism/domain/context"
import type { NewEvent } from "@tropism/domain/context-event"
import { countShown } from "@tropism/domain/guard"
import { noUsage } from "@tropism/domain/run"
import { beginningOf } from "@tropism/domain/text-beginning"
import { Effect, Option, Result } from "effect"
import { recallLimits } from "../agent/recall-limits.ts"
import { CrashPoint } from "../crash-point.ts"
import { runLimits } from "../limits.ts"
import { asideOf, makeAsides } from "./asides.ts"
import { type Bench, equipmentNow } from "./bench.ts"
import { makeBreakingIn } from "./breaking-in.ts"
import { ModelCalls } from "./model-calls.ts"
import { within } from "./model-step.ts"
import { notesRequest } from "./notes-prompt.ts"
import { Runs } from "./runs.ts"
import { makeWriting } from "./writing.ts"

export const makeNoting = Effect.gen(function* () {
  const runs = yield* Runs
  const modelCalls = yield* ModelCalls
  const { ask, keeping } = yield* makeAsides
  const { append, catchUp } = yield* makeWriting
  const { broken } = yield* makeBreakingIn

  const takeNotes = Effect.fn("Actor.takeNotes")(function* (bench: Bench, context: ReducedContext) {
    const { deadlineMs, run } = bench
    const found = yield* Effect.result(equipmentNow(bench, context))
    const noted = { type: "ContextNotedEvent", messages: countShown(context), runId: run.id } as const
    /** Records that there are none, so that they are not due again at once. */
    const skip = (error: string) => {
      const skipped: NewEvent = {
        ...noted,
        content: null,
        error: beginningOf(error, runLimits.errorMaxChars),
        model: Option.match(context.config.primary, {
          onNone: () => "",
          onSome: ({ name, provider }) => `${provider}:${name}`
        }),
        usage: noUsage
      }
      return append(run, context, [skipped])
    }
    if (Result.isFailure(found)) return yield* skip(found.failure.message)
    const { model } = found.success
    const spent = yield* runs.mayAsk(run)
    if (spent) return yield* skip(spent.reason)
    const aside = asideOf(run, context, "notes")
    const asked = within(ask(aside, model, context, notesRequest(context)), deadlineMs)
    const outcome = yield* Effect.raceFirst(asked, broken(run, context))
    yield* CrashPoint.hit("run.afterNotes")
    const isBrokenIn = outcome === "message" || outcome === "user"
    if (isBrokenIn || Option.isNone(outcome) || Result.isFailure(outcome.value)) {
      yield* modelCalls.keepUnanswered(aside)
      if (isBrokenIn) return yield* catchUp(run, context)
      if (
        Option.isSome(outcome) &&
        Result.isFailure(outcome.value) &&
        outcome.value.failure.waitsFor !== undefined
      )
        return yield* outcome.value.failure
      return yield* skip(
        Option.match(Option.flatMap(outcome, Result.getFailure), {
          onNone: () => "The run has used its time",
          onSome: ({ message }) => message
        })
      )
    }
    const answer = outcome.value.success
    const content = beginningOf(answer.text.trim(), recallLimits.notesMaxChars).toWellFormed()
    const said = content === "" ? { content: null, error: "The model said nothing" } : { content }
    const event: NewEvent = { ...noted, ...said, model: answer.model, usage: answer.usage }
    const kept = yield* append(run, context, [event], keeping(aside, answer))
    modelCalls.recorded(aside)
    return kept
  })

  return { takeNotes }
})
