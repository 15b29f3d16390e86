/**
 * What an agent says and does in answer, as a chat completion.
 *
 * Pure. All that the agent says in the turn is the answer, its steps a blank line
 * apart, and what it asks stands at the end; streamed or whole, the words are
 * the same. What its tools did is told beside the words and never as calls for the client to make.
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

/** An answer as far as it was heard. */
export interface HeardAnswer {
  readonly reading: Reading
  readonly messages: ReadonlyArray<ConversationMessage>
  readonly usage: Usage
  /** Whether anything was told of the answer before the one that is being made, and of this one. */
  readonly told: { readonly before: boolean; readonly now: boolean }
  /** What a person is told where the turn failed; the error's own words stay in the log. */
  readonly failure: string
  readonly rest: TurnRest | undefined
}

/** Behind the event that said something. */
export const beginHearing = (number: number): HeardAnswer => ({
  reading: readingAfter(number),
  messages: [],
  usage: noUsage,
  told: { before: false, now: false },
  failure: failedResponse(undefined, null),
  rest: undefined
})

/** Hears a part, and says what a stream tells of it at once. */
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

/** The words that a turn without any is told by at its end have not passed by as they were made. */
const withEvent = (before: HeardAnswer, event: LoggedEvent): ReturnType<typeof hear> => {
  const { reading, told } = readEvent(before.reading, event)
  const content = told?.message.role === "assistant" ? told.message.content : ""
  const { begun } = before.reading
  const isFailure = event.type === "AgentTurnFailedEvent"
  // What was begun of an answer has passed by.
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

/** Words behind what was told before, a blank line apart. */
const behindTold = ({ told }: HeardAnswer, words: string): string =>
  told.before || told.now ? `\n\n${words}` : words

/** What the agent asks, where it rests because it does. */
const askedIn = ({ rest }: HeardAnswer): string => questionsText(rest?.questions ?? [])

/** Who answers, and under which name the answer goes out. */
export interface AnswerTerms {
  readonly id: string
  readonly created: number
  /** The agent, as the client named it. */
  readonly model: string
  readonly conversation: string
}

/** The whole answer, once it is at rest. */
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

/** What is told of an answer that was cut short by a limit, of the run or of the time that a request waits. */
const limitEndings: ReadonlySet<string> = new Set(["stepLimit", "timeout", "budget", "bound"])

/** Why an answer is not whole; undefined where it is. */
export const cutReason = (answer: HeardAnswer): "content_filter" | "length" | undefined => {
  const { rest } = answer
  if (isFiltered(answer)) return "content_filter"
  const isCut = messagesOf(answer).at(-1)?.finishReason !== undefined
  return isCut || (rest !== undefined && limitEndings.has(rest.ending)) ? "length" : undefined
}

const finishOf = (answer: HeardAnswer): FinishReason => cutReason(answer) ?? "stop"

/** Whether the filter of the model's provider stopped the answer: OpenAI's own API gives what came, too. */
const isFiltered = ({ rest }: HeardAnswer): boolean => rest?.failure === "contentFilter"

/** Whether the client gets an error in the place of an answer. */
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

/** The chunks of a streamed answer; where usage is wanted, each but the last says that it tells none. */
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

// Delivers the answer to what was said at this door, whole or as server-sent events, in the form of its API.
//
// A client that disconnects ends only the delivery: the agent goes on. A stream that was begun never breaks off in silence: what
// goes wrong is its last event.

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
