/**
 * Asks a guard beside the model: what the model says is heard only when the guard has found nothing (S004-F06).
 *
 * Flow: graph → outbox → dispatch → **run** → tool → task
 *
 * Both are asked at the same time, so a guard costs hardly any time. What it
 * flags is never answered: the model's request is broken off, its answer thrown
 * away and its tool calls are not made. A guard that cannot be asked, or that
 * says anything but its one word, lets nothing through.
 */
import type { ReducedContext } from "@tropism/domain/context"
import { type ContextConfig, emptyConfig } from "@tropism/domain/context-config"
import type { NewEvent } from "@tropism/domain/context-event"
import { countShown, findUnjudged, isAnythingUnjudged, readVerdict } from "@tropism/domain/guard"
import { addUsage } from "@tropism/domain/run"
import { beginningOf } from "@tropism/domain/text-beginning"
import { Data, Effect, Option, Result } from "effect"
import { runLimits } from "../limits.ts"
import { ModelFailure, ModelUnavailable, type ResolvedModel } from "../model/model-request.ts"
import type { Models } from "../model/models.ts"
import type { Answer } from "./answer.ts"
import { type Aside, asideOf, makeAsides } from "./asides.ts"
import type { ClaimedRun } from "./claimed-run.ts"
import { guardMessages } from "./guard-prompt.ts"
import { aloud, makeHush, type Showing } from "./hush.ts"
import { type AskedStep, ModelCalls } from "./model-calls.ts"
import type { RunParts } from "./run-appends.ts"
import { makeShownFiles } from "./shown-files.ts"

/** An answer that may be heard, with the verdict that lets it, if one was needed. */
export interface Heard {
  readonly answer: Answer
  readonly verdict: Judgement | undefined
}

/** What a guard has said, as it is kept. */
export interface Judgement {
  readonly event: Extract<NewEvent, { readonly type: "GuardVerdictEvent" }>
  readonly costMicros: number | null
}

/** The guard has found something: the run ends, and these are its last words but for those that close it. */
export class GuardFlagged extends Data.TaggedError("GuardFlagged")<{
  readonly message: string
  readonly verdict: NewEvent
  /** What is kept with them; the answer's verdict is this many events before the last. */
  readonly parts: (eventsBehind: number) => RunParts
}> {}

export const makeGuarding = Effect.gen(function* () {
  const modelCalls = yield* ModelCalls
  const { ask } = yield* makeAsides
  const { withFiles } = yield* makeShownFiles

  /** The request to the guard that goes beside the model's, if there is anything to judge. */
  const asideFor = (
    run: ClaimedRun,
    context: ReducedContext,
    guard: ResolvedModel | undefined
  ): Aside | undefined => (guard && isAnythingUnjudged(context) ? asideOf(run, context, "guard") : undefined)

  const judge = Effect.fn("Actor.judge")(function* (
    aside: Aside,
    guard: ResolvedModel,
    context: ReducedContext
  ) {
    const unjudged = yield* withFiles(aside.run.projectId, findUnjudged(context))
    const asked = yield* ask(aside, guard, context, guardMessages(context, unjudged))
    if (Result.isFailure(asked)) return yield* unasked(asked.failure)
    const { costMicros, model, text, usage } = asked.success
    const event: Judgement["event"] = {
      type: "GuardVerdictEvent",
      ...readVerdict(text),
      content: beginningOf(text, runLimits.verdictMaxChars).toWellFormed(),
      messages: countShown(context),
      runId: aside.run.id,
      model,
      usage
    }
    const judgement: Judgement = { event, costMicros }
    return judgement
  })

  /** What is told of an answer that was thrown away, and of what it had cost by then. */
  const flagged = (aside: Aside, step: AskedStep, { costMicros, event }: Judgement) => {
    const finished = step.tries.flatMap(({ finish }) => finish ?? [])
    const usage = finished.map((each) => each.usage).reduce(addUsage, event.usage)
    const cost = finished.reduce((sum, each) => sum + (each.costMicros ?? 0), costMicros ?? 0)
    return new GuardFlagged({
      message: `The guard ${event.model} flagged what the model was about to read: ${event.reason}`,
      verdict: { ...event, usage },
      parts: (eventsBehind) => ({
        use: { usage, costMicros: cost },
        ...modelCalls.recording(step, undefined, { asked: aside, answer: { eventsBehind } })
      })
    })
  }

  /** Hears an answer, held back until the guard has judged what it answers. */
  const hear = Effect.fn("Actor.hear")(function* <R>(
    guard: ResolvedModel | undefined,
    aside: Aside | undefined,
    step: AskedStep,
    context: ReducedContext,
    answering: (showing: Showing) => Effect.Effect<Answer, ModelFailure, R>
  ) {
    if (!guard || !aside) {
      const heard: Heard = { answer: yield* answering(aloud), verdict: undefined }
      return heard
    }
    const hush = yield* makeHush
    const judging = Effect.flatMap(judge(aside, guard, context), (judgement) =>
      judgement.event.isFlagged ? Effect.fail(new Flagged({ judgement })) : Effect.as(hush.open, judgement)
    )
    const both = Effect.all({ answer: answering(hush.showing), verdict: judging }, { concurrency: 2 })
    // By now the request to the model is over, so its tries are told to the end.
    return yield* Effect.catchTag(both, "Flagged", ({ judgement }) =>
      Effect.fail(flagged(aside, step, judgement))
    )
  })

  return { asideFor, hear }
})

/** The model that judges for an agent, as its context has set it. */
export const guardOf = (models: Models["Service"], agentName: string, settings: ContextConfig) =>
  Option.match(settings.guard, {
    onNone: () => Effect.succeed(undefined),
    onSome: ({ name, provider }) =>
      models
        .resolve({
          agentName,
          model: null,
          settings: { ...emptyConfig, primary: Option.some({ provider, name }), retry: settings.retry }
        })
        .pipe(
          Effect.mapError(
            ({ message }) =>
              new ModelUnavailable({ agentName, message: `The guard cannot be asked: ${message}` })
          )
        )
  })

class Flagged extends Data.TaggedError("Flagged")<{ readonly judgement: Judgement }> {}

const unasked = (failure: ModelFailure) =>
  Effect.fail(
    new ModelFailure({
      ...failure,
      message: `The guard ${failure.provider}:${failure.model} gave no verdict: ${failure.message}`
    })
  )
