/**
 * The endpoints for OpenAI's clients: an agent answers as a model of OpenAI's would.
 *
 * Flow: **http** → chat → dispatch → run → tool → task
 *
 * The request is judged, its files are kept, and then one transaction begins the
 * context and says what is said, unless that was done under its key before. From there on the agent works whether or not
 * anybody waits: the answer is told from the log.
 */
import { OpenAiApi } from "@tropism/api/openai-api"
import { CompletionInput } from "@tropism/api/openai-completions"
import type { ProjectId } from "@tropism/domain/ids"
import { Clock, Effect } from "effect"
import { HttpServerRequest, HttpServerResponse } from "effect/http"
import { HttpApiBuilder } from "effect/http-api"
import { looking } from "./access.ts"
import { type AnswerTerms, completionForm } from "./openai-answer.ts"
import { answering } from "./openai-answering.ts"
import { faultOf, serverFault } from "./openai-faults.ts"
import { getModel, listModels } from "./openai-models.ts"
import { onlyProject } from "./openai-project.ts"
import { readCompletion } from "./openai-request.ts"
import { cancelResponse, deleteResponse, readStoredResponse, respond } from "./openai-responses.ts"
import { conversationHeader, readBody, sayIn } from "./openai-saying.ts"
import { keepable } from "./refusals.ts"

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
  const form = completionForm(terms, said.number, wanted.isUsageWanted)
  const response = yield* answering(projectId, said, form, wanted.isStreamed)
  return wanted.isHelper
    ? response
    : HttpServerResponse.setHeader(response, conversationHeader, terms.conversation)
})

/** Reads a request and what it asks for. */
const readWanted = Effect.gen(function* () {
  const input = yield* readBody(CompletionInput, "model and messages")
  const { messages, metadata = {}, model } = input
  yield* keepable({ messages, metadata, model })
  const wanted = yield* Effect.fromResult(readCompletion(input))
  const { headers } = yield* HttpServerRequest.HttpServerRequest
  const conversation = wanted.isHelper ? null : (headers[conversationHeader] ?? wanted.conversation)
  return { ...wanted, conversation }
})

/** Whatever a door of ours refuses, in the words of this one. */
const inTheirWords = Effect.mapError((error: unknown) => faultOf(error) ?? serverFault)

export const projectCompletionsHandlers = HttpApiBuilder.group(OpenAiApi, "projectCompletions", (handlers) =>
  handlers
    .handleRaw("complete", ({ params }) => inTheirWords(complete(params.projectId)))
    .handleRaw("respond", ({ params }) => inTheirWords(respond(params.projectId)))
    .handleRaw("response", ({ params, query }) =>
      inTheirWords(readStoredResponse(params.projectId, params.responseId, query))
    )
    .handle("deleteResponse", ({ params }) =>
      inTheirWords(deleteResponse(params.projectId, params.responseId))
    )
    .handle("cancelResponse", ({ params }) =>
      inTheirWords(cancelResponse(params.projectId, params.responseId))
    )
    .handle("models", ({ params }) => inTheirWords(listModels(params.projectId)))
    .handle("model", ({ params }) => inTheirWords(getModel(params.projectId, params.model)))
)

export const completionsHandlers = HttpApiBuilder.group(OpenAiApi, "completions", (handlers) =>
  handlers
    .handleRaw("complete", () => inTheirWords(Effect.flatMap(onlyProject, complete)))
    .handleRaw("respond", () => inTheirWords(Effect.flatMap(onlyProject, respond)))
    .handleRaw("response", ({ params, query }) =>
      inTheirWords(
        Effect.flatMap(onlyProject, (projectId) => readStoredResponse(projectId, params.responseId, query))
      )
    )
    .handle("deleteResponse", ({ params }) =>
      inTheirWords(Effect.flatMap(onlyProject, (projectId) => deleteResponse(projectId, params.responseId)))
    )
    .handle("cancelResponse", ({ params }) =>
      inTheirWords(Effect.flatMap(onlyProject, (projectId) => cancelResponse(projectId, params.responseId)))
    )
    .handle("models", () => inTheirWords(Effect.flatMap(onlyProject, listModels)))
    .handle("model", ({ params }) =>
      inTheirWords(Effect.flatMap(onlyProject, (projectId) => getModel(projectId, params.model)))
    )
)
