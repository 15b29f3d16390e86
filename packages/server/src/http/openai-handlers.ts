/**
 * Chat completions: an agent answers as a model of OpenAI's would.
 *
 * Flow: **http** → chat → dispatch → run → tool → task
 *
 * The request is judged, its files are kept, and then one transaction begins the
 * context and says what is said, unless that was done under its key before. From there on the agent works whether or not
 * anybody waits: the answer is told from the log.
 */
import { OpenAiApi } from "@tropism/api/openai-api"
import { completionBounds, CompletionInput } from "@tropism/api/openai-completions"
import { InvalidInput } from "@tropism/api/problems"
import type { ProjectId } from "@tropism/domain/ids"
import { findFault } from "@tropism/domain/json"
import { Clock, Effect, Schema, Stream } from "effect"
import { HttpServerRequest, HttpServerResponse } from "effect/http"
import { HttpApiBuilder } from "effect/http-api"
import { Turns } from "../chat/turns.ts"
import { isPassing } from "../database/database-away.ts"
import { looking } from "./access.ts"
import { Closing, comeAgain } from "./closing.ts"
import { unfitBody } from "./input-faults.ts"
import { type AnswerTerms, beginHearing, completionOf, hear, isFailed } from "./openai-answer.ts"
import {
  answerUnknown,
  failedTurn,
  faultOf,
  faultResponse,
  lostToken,
  type OpenAiFault,
  openAiFault,
  serverFault,
  serverLeaving
} from "./openai-faults.ts"
import { openAiLimits } from "./openai-limits.ts"
import { getModel, listModels } from "./openai-models.ts"
import { onlyProject } from "./openai-project.ts"
import { readCompletion } from "./openai-request.ts"
import { conversationHeader, sayIn } from "./openai-saying.ts"
import { streamedAnswer } from "./openai-stream.ts"
import { currentLoss } from "./permits.ts"
import { judgeBodyUpTo, judgeEncoding } from "./request-judgement.ts"

const complete = Effect.fn("http.openai.complete")(function* (projectId: ProjectId) {
  // Who may not speak here is refused before anything is read.
  yield* looking(projectId, "editor", Effect.succeed)
  const wanted = yield* readWanted
  const said = yield* sayIn(projectId, wanted)
  const terms: AnswerTerms = {
    id: `chatcmpl-${said.context}-${said.number}`,
    created: Math.floor((yield* Clock.currentTimeMillis) / 1_000),
    model: wanted.model,
    conversation: wanted.conversation ?? said.context
  }
  const { follow } = yield* Turns
  const { isStreamed, isUsageWanted } = wanted
  const waitMs = isStreamed ? openAiLimits.streamWaitMs : openAiLimits.waitMs
  const parts = follow(projectId, said.context, said.number, { isTurnOpen: said.isAnswer, waitMs })
  const lost = yield* currentLoss(projectId)
  const { lastCall } = yield* Closing
  const { headers } = yield* HttpServerRequest.HttpServerRequest
  const isKeyed = headers["idempotency-key"] !== undefined
  const leaving = serverLeaving(isKeyed)
  const unknown = answerUnknown(isKeyed)
  const response = isStreamed
    ? streamedAnswer(parts, terms, said.number, isUsageWanted, {
        away: unknown,
        others: [Effect.as(lost, lostToken), Effect.as(lastCall, leaving)]
      })
    : yield* Effect.raceAllFirst([
        Effect.catchDefect(wholeAnswer(parts, terms, said.number), (defect) =>
          isPassing(defect) ? unawaitedResponse(unknown) : Effect.die(defect)
        ),
        Effect.andThen(lost, Effect.fail(lostToken)),
        Effect.andThen(lastCall, unawaitedResponse(leaving))
      ])
  return HttpServerResponse.setHeader(response, conversationHeader, terms.conversation)
})

/** What is told instead of a whole answer that is waited for no longer; what may be sent again says when. */
const unawaitedResponse = (fault: OpenAiFault) =>
  Effect.map(faultResponse(fault), (response) => (fault.status === 503 ? comeAgain(response) : response))

/** Waits for the whole answer. */
const wholeAnswer = Effect.fnUntraced(function* (
  parts: ReturnType<Turns["Service"]["follow"]>,
  terms: AnswerTerms,
  number: number
) {
  const answer = yield* Stream.runFold(
    parts,
    () => beginHearing(number),
    (heard, part) => hear(heard, part).answer
  )
  if (isFailed(answer)) return yield* failedTurn(answer.failure)
  return yield* Effect.orDie(HttpServerResponse.json(completionOf(terms, answer)))
})

/** Reads a request and what it asks for. */
const readWanted = Effect.gen(function* () {
  yield* judgeEncoding
  yield* judgeBodyUpTo(completionBounds.bodyMaxBytes)
  const { headers, text } = yield* HttpServerRequest.HttpServerRequest
  const body = yield* Effect.orDie(text)
  if (body === "") return yield* openAiFault("Send the request as JSON, with model and messages")
  const input = yield* Effect.mapError(
    Schema.decodeUnknownEffect(CompletionInput, { errors: "all" })(JSON.parse(body)),
    ({ issue }) => unfitBody(issue)
  )
  const { messages, metadata = {}, model } = input
  const unkept = findFault({ messages, metadata, model })
  if (unkept) return yield* new InvalidInput({ detail: unkept.message, errors: [unkept] })
  const wanted = yield* Effect.fromResult(readCompletion(input))
  const conversation = wanted.isHelper ? null : (headers[conversationHeader] ?? wanted.conversation)
  return { ...wanted, conversation }
})

/** Whatever a door of ours refuses, in the words of this one. */
const inTheirWords = Effect.mapError((error: unknown) => faultOf(error) ?? serverFault)

export const projectCompletionsHandlers = HttpApiBuilder.group(OpenAiApi, "projectCompletions", (handlers) =>
  handlers
    .handleRaw("complete", ({ params }) => inTheirWords(complete(params.projectId)))
    .handle("models", ({ params }) => inTheirWords(listModels(params.projectId)))
    .handle("model", ({ params }) => inTheirWords(getModel(params.projectId, params.model)))
)

export const completionsHandlers = HttpApiBuilder.group(OpenAiApi, "completions", (handlers) =>
  handlers
    .handleRaw("complete", () => inTheirWords(Effect.flatMap(onlyProject, complete)))
    .handle("models", () => inTheirWords(Effect.flatMap(onlyProject, listModels)))
    .handle("model", ({ params }) =>
      inTheirWords(Effect.flatMap(onlyProject, (projectId) => getModel(projectId, params.model)))
    )
)
