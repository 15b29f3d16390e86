/**
 * Chat: one request says something, and its answer is told whole or as it is made.
 *
 * Flow: **http** → chat → dispatch → run → tool → task
 *
 * The message is kept before anything is answered. Whoever goes away, or does not
 * wait, cancels nothing, and whoever says it again under the same key is told of
 * the same answer.
 */
import { Api } from "@tropism/api/api"
import {
  Conflict,
  type InvalidInput,
  NotFound,
  ServerFault,
  type TooManyRequests,
  Unauthorized,
  Unavailable
} from "@tropism/api/problems"
import { shownCall } from "@tropism/domain/chat-calls"
import type { ChatAnswer } from "@tropism/domain/conversation"
import { AgentId } from "@tropism/domain/ids"
import { Cause, Effect, Option, Schema, Stream } from "effect"
import { type HttpServerRequest, HttpServerResponse } from "effect/http"
import { HttpApiBuilder } from "effect/http-api"
import { chatLimits } from "../chat/chat-limits.ts"
import {
  type ChatPart,
  Chatting,
  type NotSaid,
  type Said,
  type SayingRefused,
  unheard
} from "../chat/chatting.ts"
import { CrashPoint } from "../crash-point.ts"
import { isBrokenByAway } from "../database/database-away.ts"
import { inProject } from "./access.ts"
import { Closing, stoppedResponse, stopsWith } from "./closing.ts"
import { currentLoss } from "./permits.ts"
import { answerProblem, invalid, keepable, triggerProblem } from "./refusals.ts"
import { CurrentKey } from "./request-keys.ts"
import { streamHeaders, wantsStream } from "./sse.ts"

const isAgentId = Schema.is(AgentId)

export const chatHandlers = HttpApiBuilder.group(Api, "chat", (handlers) =>
  handlers.handle(
    "send",
    Effect.fn("http.chat.send")(function* ({ params: { projectId }, payload, query }) {
      yield* keepable(payload)
      const { conversationId, conversation_id: sameId } = payload
      if (conversationId && sameId && conversationId !== sameId)
        return yield* invalid(
          "/conversation_id",
          "It names another conversation than conversationId: send one of them"
        )
      const { agentId } = payload
      const chatting = yield* Chatting
      const said = yield* inProject(projectId, "editor", ({ userId }) =>
        agentId !== undefined && agentId !== null && !isAgentId(agentId)
          ? Effect.fail(new NotFound({ detail: `There is no agent ${agentId}` }))
          : Effect.catch(
              chatting.say({
                by: userId,
                message: payload.message,
                conversationId: conversationId ?? sameId ?? undefined,
                agentId: agentId ?? undefined
              }),
              chatProblem
            )
      )
      yield* CrashPoint.hit("chat.afterCommit")
      const waits = query.wait !== "false"
      const lost = yield* currentLoss(projectId)
      const { lastCall } = yield* Closing
      if (yield* wantsStream) {
        const parts = chatting.answering(projectId, said, waits ? chatLimits.streamWaitMs : 0)
        return streamed(parts, said, lost, lastCall)
      }
      const answered = (whole: ChatAnswer) =>
        Effect.orDie(HttpServerResponse.json(whole, { status: whole.status === "working" ? 202 : 200 }))
      // Told of a fault, whoever has no key would say it again.
      const isKeyed = (yield* CurrentKey) !== undefined
      return yield* Effect.raceAllFirst([
        Effect.flatMap(chatting.answer(projectId, said, waits ? chatLimits.waitMs : 0), answered),
        Effect.andThen(lost, Effect.fail(lostToken)),
        Effect.andThen(lastCall, isKeyed ? stoppedResponse(goesOn) : answered(unheard(said)))
      ])
    })
  )
)

/** Why something was not said, as a problem. */
const chatProblem = (
  refusal: NotSaid
): Effect.Effect<
  never,
  Conflict | InvalidInput | NotFound | TooManyRequests,
  HttpServerRequest.HttpServerRequest
> => {
  switch (refusal._tag) {
    case "TriggerRefused":
      return triggerProblem(refusal)
    case "SayingRefused":
      return Effect.fail(sayingProblem(refusal))
    case "AnswerRefused":
      return Effect.fail(
        refusal.reason === "noOption" || refusal.reason === "tooLong"
          ? invalid("/message", refusal.detail)
          : answerProblem(refusal)
      )
    case "PromptFailed":
      return Effect.fail(new Conflict({ reason: "state", detail: refusal.detail }))
  }
}

const sayingProblem = ({ detail, reason }: SayingRefused) => {
  switch (reason) {
    case "noConversation":
    case "noAgent":
      return new NotFound({ detail })
    case "blank":
      return invalid("/message", detail)
    default:
      return invalid("/agentId", detail)
  }
}

/** What whoever waits is told whose token may not hear the answer any more. */
const lostToken = new Unauthorized({
  detail:
    "Your token is not good any more, or has another role by now: your message is kept and will be answered"
})

/** What whoever waits is told where the server stops before the answer is there. */
const goesOn =
  "The server stops before the answer is there, and the agent goes on at another one: send the message again under the same Idempotency-Key if it had one, else read the conversation"

/**
 * The answer as server-sent events, with a comment now and then while it is quiet; whoever may not hear it any more is cut off.
 *
 * **Details** A server that stops tells it for as long as it may, and at the last call that it does not end here.
 */
const streamed = (
  parts: Stream.Stream<ChatPart>,
  said: Said,
  lost: Effect.Effect<void>,
  lastCall: Effect.Effect<void>
) =>
  HttpServerResponse.stream(
    Stream.make(
      sent("begun", {
        conversationId: said.conversationId,
        conversation_id: said.conversationId
      })
    ).pipe(
      Stream.concat(
        Stream.map(Stream.interruptWhen(parts, lost), sentPart).pipe(
          Stream.merge(Stream.fromEffect(Effect.as(lastCall, sentLast(stopsWith(goesOn)))), {
            haltStrategy: "either"
          })
        )
      ),
      Stream.catchCause((cause) =>
        Cause.hasInterruptsOnly(cause) ? Stream.failCause(cause) : Stream.fromEffect(faulty(cause))
      ),
      Stream.merge(heartbeats, { haltStrategy: "left" }),
      Stream.encodeText
    ),
    { contentType: "text/event-stream", headers: streamHeaders }
  )

const sentPart = (part: ChatPart): string => {
  switch (part.type) {
    case "words":
      return sent("words", { text: part.text })
    case "toolCall": {
      const { callId, status } = part.call
      return sent("toolCall", { callId, status, ...shownCall(part.call) })
    }
    case "done":
      return sent("done", part.answer)
  }
}

/** What a stream that breaks says last: what was said is kept, so asking again under the same key tells the answer. */
const faulty = (cause: Cause.Cause<unknown>) =>
  isBrokenByAway(cause)
    ? Effect.succeed(sentLast(new Unavailable({ detail: `The database does not answer. ${isKept}` })))
    : Effect.as(
        Effect.logError("A chat's stream failed", cause),
        sentLast(new ServerFault({ detail: isKept }))
      )

const isKept =
  "Your message is kept and will be answered: send it again under the same Idempotency-Key, or read the conversation"

const sentLast = ({ detail, status, title, type }: ServerFault | Unavailable): string =>
  sent("error", { type, title, status, detail })

const sent = (name: string, json: unknown): string => `event: ${name}\ndata: ${JSON.stringify(json)}\n\n`

const heartbeats = Stream.paginate(undefined, () =>
  Effect.as(Effect.sleep(chatLimits.heartbeatIntervalMs), [
    [": heartbeat\n\n"],
    Option.some(undefined)
  ] as const)
)
