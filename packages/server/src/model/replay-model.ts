/**
 * The `replay` model: answers as a recorded run was answered, request by request.
 *
 * Flow: graph → outbox → dispatch → run → **model** → tool → task
 *
 * It needs no network and reads nothing of what it is asked: the n-th request
 * of a run gets the n-th answer of the record. When the record is used up, the
 * request fails with a sentence. Nothing is spent, so no tokens are counted.
 * Where records lie is the asker's knowledge: it hands in a reader.
 */
import { Effect, Schema, Stream } from "effect"
import { AiError, Response } from "effect/ai"
import type { ModelPort } from "./model-port.ts"
import type { ReadRecord, RecordedAnswer } from "./model-request.ts"

/** Makes the model that answers each request by its number from 0. */
export const fromRecord =
  (runId: string, read: ReadRecord): ModelPort =>
  ({ step = 0 }) =>
    Stream.unwrap(
      Effect.map(read(runId, step), (answer) =>
        answer === null ? Stream.fail(usedUp(runId, step)) : Stream.fromIterable(partsOf(answer))
      )
    )

const usedUp = (runId: string, step: number): AiError.AiError =>
  AiError.make({
    module: "model",
    method: "replay",
    reason: new AiError.InvalidRequestError({
      description: `The record of the run ${runId} is used up: it has ${step} ${step === 1 ? "answer" : "answers"}, and this is request ${step + 1}`
    })
  })

const textId = "0"

const isReason = Schema.is(Response.FinishReason)

const partsOf = ({
  finishReason,
  text,
  toolCalls
}: RecordedAnswer): ReadonlyArray<Response.StreamPartEncoded> => [
  ...(text === ""
    ? []
    : ([
        { type: "text-start", id: textId },
        { type: "text-delta", id: textId, delta: text },
        { type: "text-end", id: textId }
      ] as const)),
  ...toolCalls.map((call): Response.StreamPartEncoded => ({
    type: "tool-call",
    id: call.id,
    name: call.name,
    params: call.arguments
  })),
  {
    type: "finish",
    reason: isReason(finishReason) ? finishReason : toolCalls.length === 0 ? "stop" : "tool-calls",
    usage: { inputTokens: { total: 0 }, outputTokens: { total: 0 } }
  }
]
