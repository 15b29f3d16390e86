/**
 * Builds a chat completion from an agent's turn.
 *
 * Pure. The answer is all text of the turn, its steps separated by a blank line, with the agent's question at the end; streamed or whole,
 * the text is the same. Tool use is reported beside the text, never as calls that the client should run.
 */
import type { OpenAiError } from "@tropism/api/openai-api"
import type {
  Completion,
  CompletionChunk,
  CompletionExtra,
  CompletionUsage,
  FinishReason
} from "@tropism/api/openai-completions"
import { lastFault } from "@tropism/domain/chat-calls"
import { questionsText, failedResponse } from "@tropism/domain/chat-sentences"
import { AgentTurnFailedEvent, type LoggedEvent, type TurnFailure } from "@tropism/domain/context-event"
import type { ConversationMessage } from "@tropism/domain/conversation"
import { type Reading, readEvent, readingAfter, unsaid } from "@tropism/domain/conversation-reading"
import type { ProjectId } from "@tropism/domain/ids"
import { addUsage, noUsage, type Usage } from "@tropism/domain/run"
import { Effect, Cause, Stream } from "effect"
import { HttpServerRequest, HttpServerResponse } from "effect/http"
import type { SaidIn } from "../../chat/completions.ts"
import { type TurnPart, type TurnRest, Turns } from "../../chat/turns.ts"
import { isBrokenInPassing, isPassing } from "../../database/connection-errors.ts"
import { currentLoss } from "../access.ts"
import { Closing, comeAgain } from "../listener.ts"
import { streamHeaders } from "../streams.ts"
import {
  failedTurn,
  answerUnknown,
  faultResponse,
  lostToken,
  type OpenAiFault,
  serverFault,
  serverLeaving,
  openAiLimits
} from "./faults.ts"

/** An answer as far as its events have arrived. */
export interface HeardAnswer {
  readonly reading: Reading
  readonly messages: ReadonlyArray<ConversationMessage>
  readonly usage: Usage
  /** Whether any text was sent before the current message, and of the current message. */
  readonly told: { readonly before: boolean; readonly now: boolean }
  /** The public text of a failed turn; the error's own message stays in the log. */
  readonly failure: string
  readonly rest: TurnRest | undefined
}

/** The state after the event that was sent. */
export const beginHearing = (number: number): HeardAnswer => ({
  reading: readingAfter(number),
  messages: [],
  usage: noUsage,
  told: { before: false, now: false },
  failure: failedResponse(undefined, null),
  rest: undefined
})

/** Applies a part, and returns what a stream sends at once. */
export const hear = (
  before: HeardAnswer,
  part: TurnPart
): { readonly answer: HeardAnswer; readonly words: string } => {
  switch (part.type) {
    case "words": {
      const isFirst = !before.told.now && before.told.before
      const answer = { ...before, told: { ...before.told, now: true } }
      return { answer, words: isFirst ? `\n\n${part.text}` : part.text }
    }
    case "event":
      return withEvent(before, part.event)
    case "rest": {
      const answer = { ...before, rest: part }
      const asked = askedIn(answer)
      return { answer, words: asked === "" ? "" : behindTold(before, asked) }
    }
  }
}

/** The final event repeats the text of the turn, which a stream has already sent. */
const withEvent = (before: HeardAnswer, event: LoggedEvent): ReturnType<typeof hear> => {
  const { reading, told } = readEvent(before.reading, event)
  const content = told?.message.role === "assistant" ? told.message.content : ""
  const { begun } = before.reading
  const isFailure = event.type === "AgentTurnFailedEvent"
  // The beginning of an interrupted answer was already sent.
  const words = event.type === "AgentTurnCompletedEvent" && begun === undefined ? content : ""
  const isSaid = told?.message.role === "assistant" && !isFailure
  const answer: HeardAnswer = {
    ...before,
    reading,
    messages: [
      ...before.messages,
      ...(isSaid ? [told.message] : []),
      ...(isFailure && begun !== undefined ? [begun] : [])
    ],
    usage: "usage" in event ? addUsage(before.usage, event.usage as Usage) : before.usage,
    failure: isFailure ? failedResponse(lastFault(before.reading.carried), reasonOf(event)) : before.failure,
    told: content === "" ? before.told : { before: true, now: false }
  }
  return { answer, words: words === "" ? "" : behindTold(before, words) }
}

const reasonOf = (event: LoggedEvent): TurnFailure | null =>
  event instanceof AgentTurnFailedEvent ? (event.reason ?? null) : null

/** Text after what was sent before, separated by a blank line. */
const behindTold = ({ told }: HeardAnswer, words: string): string =>
  told.before || told.now ? `\n\n${words}` : words

/** The agent's question, if the run is paused for one. */
const askedIn = ({ rest }: HeardAnswer): string => questionsText(rest?.questions ?? [])

/** The agent and the model name of an answer. */
export interface AnswerTerms {
  readonly id: string
  readonly created: number
  /** The agent's name as the client sent it. */
  readonly model: string
  readonly conversation: string
}

/** The whole answer of a finished turn. */
const completionOf = (terms: AnswerTerms, answer: HeardAnswer): Completion => {
  const asked = askedIn(answer)
  const said = messagesOf(answer).flatMap(({ content }) => (content === "" ? [] : [content]))
  const { conversation: _conversation, ...shared } = terms
  return {
    ...shared,
    object: "chat.completion",
    choices: [
      {
        index: 0,
        message: {
          role: "assistant",
          content: [...said, ...(asked === "" ? [] : [asked])].join("\n\n"),
          refusal: null
        },
        logprobs: null,
        finish_reason: finishOf(answer)
      }
    ],
    usage: usageOf(answer),
    x_tropism: extraOf(terms, answer)
  }
}

const messagesOf = (answer: HeardAnswer): ReadonlyArray<ConversationMessage> => {
  const last = unsaid(answer.reading)
  return last ? [...answer.messages, last.message] : answer.messages
}

/** The ends of a run that report `length`: a limit of the run or of the request's wait. */
const limitEndings: ReadonlySet<string> = new Set(["stepLimit", "timeout", "budget", "bound"])

/** The finish reason of an incomplete answer; undefined where it is complete. */
export const cutReason = (answer: HeardAnswer): "content_filter" | "length" | undefined => {
  const { rest } = answer
  if (isFiltered(answer)) return "content_filter"
  const isCut = messagesOf(answer).at(-1)?.finishReason !== undefined
  return isCut || (rest !== undefined && limitEndings.has(rest.ending)) ? "length" : undefined
}

const finishOf = (answer: HeardAnswer): FinishReason => cutReason(answer) ?? "stop"

/** Whether the provider's filter stopped the answer: OpenAI's own API then returns the partial text, too. */
const isFiltered = ({ rest }: HeardAnswer): boolean => rest?.failure === "contentFilter"

/** Whether the client gets an error instead of an answer. */
export const isFailed = (answer: HeardAnswer): boolean =>
  answer.rest?.status === "failed" && !isFiltered(answer)

export const usageOf = ({ usage }: HeardAnswer): CompletionUsage => ({
  prompt_tokens: usage.inputTokens,
  prompt_tokens_details: { cached_tokens: usage.cachedInputTokens ?? 0 },
  completion_tokens: usage.outputTokens,
  completion_tokens_details: { reasoning_tokens: usage.reasoningTokens ?? 0 },
  total_tokens: usage.inputTokens + usage.outputTokens
})

const extraOf = ({ conversation }: AnswerTerms, answer: HeardAnswer): CompletionExtra => ({
  conversation,
  status: answer.rest?.status ?? "working",
  run_id: answer.rest?.runId ?? null,
  tool_calls: messagesOf(answer).flatMap(({ toolCalls }) => toolCalls)
})

type Choice = CompletionChunk["choices"][number]

/** The chunks of a streamed answer; where usage is requested, all but the last carry a null usage. */
const chunksOf = (terms: AnswerTerms, isUsageWanted: boolean) => {
  const { conversation: _conversation, ...shared } = terms
  const chunk = (
    delta: Choice["delta"],
    finish: FinishReason | null = null,
    more: Partial<CompletionChunk> = {}
  ): CompletionChunk => ({
    ...shared,
    object: "chat.completion.chunk",
    choices: [{ index: 0, delta, logprobs: null, finish_reason: finish }],
    ...(isUsageWanted ? { usage: null } : {}),
    ...more
  })
  return {
    first: chunk({ role: "assistant", content: "" }),
    words: (content: string) => chunk({ content }),
    last: (answer: HeardAnswer): ReadonlyArray<CompletionChunk> => [
      chunk({}, finishOf(answer), { x_tropism: extraOf(terms, answer) }),
      ...(isUsageWanted
        ? [{ ...shared, object: "chat.completion.chunk", choices: [], usage: usageOf(answer) } as const]
        : [])
    ]
  }
}

/** A chat completion, whole or as chunks; the last event of a stream is `[DONE]`. */
export const completionForm = (
  terms: AnswerTerms,
  number: number,
  isUsageWanted: boolean
): AnswerForm<HeardAnswer, CompletionChunk | OpenAiError | "[DONE]"> => {
  const chunks = chunksOf(terms, isUsageWanted)
  const endOf = (answer: HeardAnswer) =>
    isFailed(answer)
      ? [{ error: failedTurn(answer.failure).error }]
      : [...chunks.last(answer), "[DONE]" as const]
  return {
    start: beginHearing(number),
    first: [chunks.first],
    hear: (before, part) => {
      const { answer, words } = hear(before, part)
      const texts = words === "" ? [] : [chunks.words(words)]
      return [answer, part.type === "rest" ? [...texts, ...endOf(answer)] : texts]
    },
    fault: ({ error }) => ({ error }),
    encode: (event) => `data: ${event === "[DONE]" ? event : JSON.stringify(event)}\n\n`,
    whole: (answer) =>
      isFailed(answer) ? failedTurn(answer.failure) : Effect.succeed(completionOf(terms, answer))
  }
}

// Delivers the answer, whole or as server-sent events, in the format of its API.
//
// A client that disconnects ends only the delivery; the agent continues. A stream never breaks off silently: an error is its last event.

/** An API's answer format: a fold over the parts of a turn. */
export interface AnswerForm<State, Event> {
  readonly start: State
  /** The events with which a stream begins. */
  readonly first: ReadonlyArray<Event>
  readonly hear: (state: State, part: TurnPart) => readonly [State, ReadonlyArray<Event>]
  readonly fault: (fault: OpenAiFault) => Event
  /** An event in wire format, with its number in the stream. */
  readonly encode: (event: Event, number: number) => string
  /** The whole answer, or the error in its place. */
  readonly whole: (state: State) => Effect.Effect<unknown, OpenAiFault>
}

/** Where the expected answer begins. */
export type AnswerPlace = Pick<SaidIn, "context" | "isAnswer" | "number"> & {
  readonly until?: number | undefined
}

/** Answers a request with the turn that its message started. */
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

/** The answer for a wait that ended early, with Retry-After where the request may be sent again. */
const unawaitedResponse = (fault: OpenAiFault) =>
  Effect.map(faultResponse(fault), (response) => (fault.status === 503 ? comeAgain(response) : response))

/** Streams the events of an answer as they come, and last the reason if it breaks. */
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
