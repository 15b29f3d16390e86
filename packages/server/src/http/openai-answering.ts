/**
 * Delivers the answer to what was said at this door, whole or as server-sent events, in the form of its API.
 *
 * Flow: **http** → chat → dispatch → run → tool → task
 *
 * A client that disconnects ends only the delivery: the agent goes on. A stream that was begun never breaks off in silence: what
 * goes wrong is its last event.
 */
import type { ProjectId } from "@tropism/domain/ids"
import { Cause, Effect, Stream } from "effect"
import { HttpServerRequest, HttpServerResponse } from "effect/http"
import type { SaidIn } from "../chat/completions.ts"
import { type TurnPart, Turns } from "../chat/turns.ts"
import { isBrokenInPassing, isPassing } from "../database/database-away.ts"
import { Closing, comeAgain } from "./closing.ts"
import {
  answerUnknown,
  faultResponse,
  lostToken,
  type OpenAiFault,
  serverFault,
  serverLeaving
} from "./openai-faults.ts"
import { openAiLimits } from "./openai-limits.ts"
import { currentLoss } from "./permits.ts"
import { streamHeaders } from "./sse.ts"

/** How an API's answers look: a fold of the parts of a turn. */
export interface AnswerForm<State, Event> {
  readonly start: State
  /** The events with which a stream begins. */
  readonly first: ReadonlyArray<Event>
  readonly hear: (state: State, part: TurnPart) => readonly [State, ReadonlyArray<Event>]
  readonly fault: (fault: OpenAiFault) => Event
  /** An event as it goes over the wire, with its number in the stream. */
  readonly encode: (event: Event, number: number) => string
  /** The whole answer, or why there is none. */
  readonly whole: (state: State) => Effect.Effect<unknown, OpenAiFault>
}

/** Where the answer to follow begins. */
export type AnswerPlace = Pick<SaidIn, "context" | "isAnswer" | "number"> & {
  readonly until?: number | undefined
}

/** Answers with what comes of what was said. */
export const answering = Effect.fnUntraced(function* <State, Event>(
  projectId: ProjectId,
  said: AnswerPlace,
  form: AnswerForm<State, Event>,
  isStreamed: boolean
) {
  const waitMs = isStreamed ? openAiLimits.streamWaitMs : openAiLimits.waitMs
  const parts = yield* partsOf(projectId, said, waitMs)
  const lost = yield* currentLoss(projectId)
  const { lastCall } = yield* Closing
  const { headers } = yield* HttpServerRequest.HttpServerRequest
  const isKeyed = headers["idempotency-key"] !== undefined
  const leaving = serverLeaving(isKeyed)
  const unknown = answerUnknown(isKeyed)
  if (isStreamed)
    return streamed(parts, form, unknown, [Effect.as(lost, lostToken), Effect.as(lastCall, leaving)])
  const whole = foldedAnswer(parts, form).pipe(
    Effect.flatMap(form.whole),
    Effect.flatMap((json) => Effect.orDie(HttpServerResponse.json(json)))
  )
  return yield* Effect.raceAllFirst([
    Effect.catchDefect(whole, (defect) =>
      isPassing(defect) ? unawaitedResponse(unknown) : Effect.die(defect)
    ),
    Effect.andThen(lost, Effect.fail(lostToken)),
    Effect.andThen(lastCall, unawaitedResponse(leaving))
  ])
})

/** The answer as far as its log has it now. */
export const answerSoFar = Effect.fnUntraced(function* <State, Event>(
  projectId: ProjectId,
  said: AnswerPlace,
  form: AnswerForm<State, Event>
) {
  return yield* foldedAnswer(yield* partsOf(projectId, said, 0), form)
})

const partsOf = (projectId: ProjectId, { context, isAnswer, number, until }: AnswerPlace, waitMs: number) =>
  Effect.map(Turns, ({ follow }) =>
    follow(projectId, context, number, { isTurnOpen: isAnswer, until, waitMs })
  )

const foldedAnswer = <State, Event>(
  parts: Stream.Stream<TurnPart>,
  { hear, start }: AnswerForm<State, Event>
) =>
  Stream.runFold(
    parts,
    () => start,
    (state, part) => hear(state, part)[0]
  )

/** What is told instead of a whole answer that is waited for no longer; what may be sent again says when. */
const unawaitedResponse = (fault: OpenAiFault) =>
  Effect.map(faultResponse(fault), (response) => (fault.status === 503 ? comeAgain(response) : response))

/** Streams the events of an answer as they come, and last why there are no more. */
const streamed = <State, Event>(
  parts: Stream.Stream<TurnPart>,
  { encode, fault, first, hear, start }: AnswerForm<State, Event>,
  away: OpenAiFault,
  others: ReadonlyArray<Effect.Effect<OpenAiFault>>
): HttpServerResponse.HttpServerResponse => {
  const told = parts.pipe(
    Stream.mapAccum(() => start, hear),
    Stream.catchCause((cause) =>
      Cause.hasInterruptsOnly(cause)
        ? Stream.empty
        : isBrokenInPassing(cause)
          ? Stream.make(fault(away))
          : Stream.fromEffect(Effect.as(Effect.logError("An answer failed", cause), fault(serverFault)))
    )
  )
  const dismissal = Stream.fromEffect(Effect.map(Effect.raceAllFirst(others), fault))
  const whole = Stream.concat(
    Stream.fromIterable(first),
    Stream.merge(told, dismissal, { haltStrategy: "either" })
  ).pipe(
    Stream.mapAccum(
      () => 0,
      (number, event) => [number + 1, [encode(event, number)]] as const
    )
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
