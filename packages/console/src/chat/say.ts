/**
 * Says something to an agent and hears the answer as it is made, through cuts.
 *
 * The message has a key of its own. Whoever sends it again under that key says
 * nothing twice and is told the same answer, so a connection that breaks is
 * simply opened again, by this page or by the next. After many tries in vain it
 * is left to a person, who may say so at any time.
 */
import type { ChatAnswer } from "@tropism/domain/conversation"
import { Effect, Schema, Stream } from "effect"
import { limits } from "../limits.ts"
import { eventReader, linesOf } from "../server/event-stream.ts"
import { Problem, type ProblemDocument, Unreachable } from "../server/problem.ts"
import { answerOf, documentOf, inProject } from "../server/request.ts"

/** What is being said: enough to say it again. */
export const Saying = Schema.Struct({
  key: Schema.String,
  message: Schema.String,
  /** Undefined until a new conversation has begun. */
  conversationId: Schema.optionalKey(Schema.String),
  /** With whom a new conversation is. */
  agentId: Schema.optionalKey(Schema.String),
  /** The newest message before it; everything behind it belongs to this turn. */
  after: Schema.optionalKey(Schema.String)
})
export type Saying = typeof Saying.Type

/** A tool call as the stream tells it. */
export interface HeardCall {
  readonly callId: string
  readonly status: string
  readonly tool: string
  readonly arguments: Schema.Json
  readonly result: Schema.Json
}

export interface SayingListener {
  /** The answer is told from its first word. */
  readonly onBegun: (conversationId: string) => void
  readonly onWords: (text: string) => void
  readonly onCall: (call: HeardCall) => void
  /** The connection broke; it is opened again. */
  readonly onLost: () => void
}

/** Says it, and answers what the agent answered; fails with what the server refuses, and where it does not answer for long. */
export const say = Effect.fnUntraced(function* (projectId: string, saying: Saying, listener: SayingListener) {
  let pauseMs: number = limits.feedRetryMs
  let inVain = 0
  while (true) {
    const answer = yield* Effect.catch(hear(projectId, saying, listener), (failure) =>
      isRefusal(failure) ? Effect.fail(failure) : Effect.succeed(undefined)
    )
    if (answer !== undefined && answer.status !== "working") return answer
    // An agent may work for longer than a stream lasts; then the server has said so.
    inVain = answer === undefined ? inVain + 1 : 0
    listener.onLost()
    if (inVain === limits.maxChatTries)
      return yield* new Unreachable({ cause: "No attempt succeeded", isOpen: true })
    yield* Effect.sleep(pauseMs)
    pauseMs = Math.min(pauseMs * 2, limits.maxChatRetryMs)
  }
})

/** Trying again would not help; with a fault of the server, or the same request still at work, it may. */
const isRefusal = (failure: Problem | Unreachable): failure is Problem =>
  failure instanceof Problem && failure.status < 500 && failure.document.reason !== "keyBusy"

/** One connection. It must end with the answer, or with that it is not there yet; one that ends without was cut. */
const hear = Effect.fnUntraced(function* (projectId: string, saying: Saying, listener: SayingListener) {
  const response = yield* answerOf(inProject(projectId, "chat"), {
    method: "POST",
    headers: {
      accept: "text/event-stream",
      "content-type": "application/json",
      "idempotency-key": saying.key
    },
    body: JSON.stringify(bodyOf(saying))
  })
  const { body } = response
  if (!response.ok || body === null)
    return yield* new Problem({ status: response.status, document: yield* documentOf(response) })
  const read = eventReader()
  let answer: ChatAnswer | undefined
  let refusal: ProblemDocument | undefined
  yield* linesOf(body).pipe(
    Stream.runForEach((line) =>
      Effect.sync(() => {
        const event = read(line)
        if (event === undefined) return
        const told = JSON.parse(event.text)
        if (event.name === "begun") listener.onBegun(told.conversationId)
        if (event.name === "words") listener.onWords(told.text)
        if (event.name === "toolCall") listener.onCall(told)
        if (event.name === "done") answer = told
        if (event.name === "error") refusal = told
      })
    )
  )
  if (refusal !== undefined) return yield* new Problem({ status: 500, document: refusal })
  if (answer === undefined) return yield* new Unreachable({ cause: "The reply is not ready yet" })
  return answer
})

/** The same under each try: under one key another message is refused. */
const bodyOf = ({ message, conversationId, agentId }: Saying) =>
  agentId === undefined
    ? { message, ...(conversationId !== undefined && { conversationId }) }
    : { message, agentId }
