/**
 * An answer as server-sent events, each a chunk of a chat completion.
 *
 * Flow: **http** → chat → dispatch → run → tool → task
 *
 * Whoever leaves ends only the telling: the agent goes on. A stream that was begun
 * never breaks off in silence; what goes wrong is its last event.
 */
import type { OpenAiError } from "@tropism/api/openai-api"
import { Cause, Effect, Stream } from "effect"
import { HttpServerResponse } from "effect/http"
import { isBrokenInPassing } from "../database/database-away.ts"
import type { TurnPart } from "../chat/turns.ts"
import {
  type AnswerTerms,
  beginHearing,
  chunksOf,
  type HeardAnswer,
  hear,
  isFailed
} from "./openai-answer.ts"
import { failedTurn, type OpenAiFault, serverFault } from "./openai-faults.ts"
import { openAiLimits } from "./openai-limits.ts"
import { streamHeaders } from "./sse.ts"

/** Why there may be no more of an answer before it is whole. */
interface StreamEndings {
  /** Where the database stays away, or breaks off. */
  readonly away: OpenAiFault
  /** Whichever comes first. */
  readonly others: ReadonlyArray<Effect.Effect<OpenAiFault>>
}

/** Tells the parts of an answer to an event as they come, and last why there are no more. */
export const streamedAnswer = (
  parts: Stream.Stream<TurnPart>,
  terms: AnswerTerms,
  number: number,
  isUsageWanted: boolean,
  { away, others }: StreamEndings
): HttpServerResponse.HttpServerResponse => {
  const chunks = chunksOf(terms, isUsageWanted)
  const told = parts.pipe(
    Stream.mapAccum(
      (): HeardAnswer => beginHearing(number),
      (before, part) => {
        const { answer, words } = hear(before, part)
        const texts = words === "" ? [] : [event(chunks.words(words))]
        return [answer, part.type === "rest" ? [...texts, ...endOf(answer, chunks)] : texts] as const
      }
    ),
    Stream.catchCause((cause) =>
      Cause.hasInterruptsOnly(cause)
        ? Stream.empty
        : isBrokenInPassing(cause)
          ? Stream.make(faultEvent(away))
          : Stream.fromEffect(
              Effect.as(Effect.logError("A completion failed", cause), faultEvent(serverFault))
            )
    )
  )
  const dismissal = Stream.fromEffect(Effect.map(Effect.raceAllFirst(others), faultEvent))
  const whole = Stream.concat(
    Stream.make(event(chunks.first)),
    Stream.merge(told, dismissal, { haltStrategy: "either" })
  )
  const heartbeats = Stream.map(
    Stream.drop(Stream.tick(openAiLimits.heartbeatIntervalMs), 1),
    () => ": heartbeat\n\n"
  )
  return HttpServerResponse.stream(
    Stream.encodeText(Stream.merge(whole, heartbeats, { haltStrategy: "left" })),
    { contentType: "text/event-stream", headers: streamHeaders }
  )
}

const endOf = (answer: HeardAnswer, chunks: ReturnType<typeof chunksOf>): ReadonlyArray<string> =>
  isFailed(answer)
    ? [faultEvent(failedTurn(answer.failure))]
    : [...chunks.last(answer).map(event), "data: [DONE]\n\n"]

const event = (json: unknown): string => `data: ${JSON.stringify(json)}\n\n`

const faultEvent = ({ error }: OpenAiFault): string => {
  const told: OpenAiError = { error }
  return event(told)
}
