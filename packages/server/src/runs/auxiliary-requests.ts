/**
 * Makes model requests that are not steps of their run, such as summaries and notes.
 *
 * They offer no tools, their text is not streamed, and they do not count as steps. Their cost counts like any other, and each try is
 * recorded with its purpose.
 */
import type { ReducedContext } from "@tropism/domain/context"
import type { Message } from "@tropism/domain/message"
import type { ModelCallPurpose } from "@tropism/domain/model-call"
import { noUsage } from "@tropism/domain/run"
import { Effect, Option, Result, Stream } from "effect"
import { ModelFailure, type ModelTry, type ResolvedModel } from "../models/model-request.ts"
import type { RunParts } from "./appends.ts"
import { type Answer, stepsOf } from "./model-answer.ts"
import { type AskedStep, ModelCalls } from "./model-calls.ts"
import { makeRunTelemetry } from "./run-telemetry.ts"
import type { ClaimedRun } from "./run-types.ts"

/** A request outside the steps; its tries are added while it runs. */
export interface Aside extends AskedStep {
  readonly tries: Array<ModelTry>
}

/** Describes a request that is about to be made at the current end of the log. */
export const asideOf = (run: ClaimedRun, context: ReducedContext, purpose: ModelCallPurpose): Aside => ({
  run,
  purpose,
  step: stepsOf(run, context) + 1,
  afterEvent: context.nextEventNumber - 1,
  tools: [],
  tries: []
})

export const makeAuxiliaryRequests = Effect.gen(function* () {
  const modelCalls = yield* ModelCalls
  const observing = yield* makeRunTelemetry

  /** Sends the request and returns the answer or the failure; interruption aborts it. */
  const ask = Effect.fn("Actor.askAside")(function* (
    aside: Aside,
    model: ResolvedModel,
    { config }: ReducedContext,
    messages: ReadonlyArray<Message>
  ) {
    // A recorded run holds only the answers to its steps.
    if (model.provider === "replay") return Result.fail(noRecord(model))
    const timeoutMs = Option.getOrUndefined(config.timeoutMs)
    const asked = model
      .request({
        messages,
        tools: [],
        step: aside.step - 1,
        tried: (each) => aside.tries.push(each),
        ...(timeoutMs === undefined ? {} : { timeoutMs })
      })
      .pipe(
        Stream.runFold(
          (): Answer => ({
            text: "",
            toolCalls: [],
            usage: noUsage,
            costMicros: null,
            finishReason: "unknown",
            model: `${model.provider}:${model.name}`
          }),
          (answer, part): Answer => {
            if (part.type === "text") return { ...answer, text: answer.text + part.delta }
            if (part.type === "toolCall") return answer
            const { costMicros, name, provider, reason, thoughtChars = 0, usage } = part
            return {
              ...answer,
              text: answer.text.slice(thoughtChars),
              usage,
              costMicros,
              finishReason: reason,
              model: `${provider}:${name}`
            }
          }
        )
      )
    const outcome = yield* Effect.result(asked).pipe(
      Effect.onExit((exit) =>
        observing.asked(aside, {
          messages,
          answer: exit._tag === "Success" ? Option.getOrUndefined(Result.getSuccess(exit.value)) : undefined
        })
      )
    )
    return outcome
  })

  /** Returns the parts of an append that count an answer and record its request with the last appended event. */
  const keeping = (aside: Aside, { costMicros, usage }: Answer): RunParts => ({
    use: { usage, costMicros: costMicros ?? 0 },
    ...modelCalls.recording(aside, { eventsBehind: 0 })
  })

  return { ask, keeping }
})

const noRecord = ({ name, provider }: ResolvedModel) =>
  new ModelFailure({
    provider,
    model: name,
    reason: "refused",
    message: "A recorded run has answers to its steps alone",
    outputBegan: false,
    isRetryable: false,
    retryAfterMs: null
  })
