/**
 * Endpoints for OpenAI's clients: an agent answers as an OpenAI model would.
 *
 * A request is validated and its files are stored; then one transaction creates the context and appends the messages, unless its key was
 * used before. From then on the agent works whether or not anyone waits; the answer is read from the log.
 */
import { CurrentPrincipal } from "@tropism/api/authorization"
import { OpenAiApi, OpenAiAuthorization, OpenAiErrors } from "@tropism/api/openai-api"
import { CompletionInput } from "@tropism/api/openai-completions"
import type { ProjectId } from "@tropism/domain/ids"
import { Clock, Effect, Layer, Redacted } from "effect"
import { HttpServerRequest, HttpServerResponse, type Headers, HttpRouter } from "effect/http"
import { HttpApiBuilder } from "effect/http-api"
import { passingFault } from "../../database/connection-errors.ts"
import { Projects } from "../../tenancy/projects.ts"
import { looking } from "../access.ts"
import { CurrentCredential, CurrentHolder, principalAt } from "../authentication.ts"
import { originOf, preflight, readableBy, findStranger, Standing } from "../origins.ts"
import { keepable } from "../problems.ts"
import { Tokens } from "../tokens.ts"
import { type AnswerTerms, completionForm, answering } from "./answers.ts"
import { faultOf, serverFault, openAiFault, openAiLimits, faultResponse } from "./faults.ts"
import { getModel, listModels, conversationHeader, readBody, sayIn } from "./messages.ts"
import { readCompletion } from "./requests.ts"
import { cancelResponse, deleteResponse, readStoredResponse, respond } from "./responses.ts"

const complete = Effect.fn("http.openai.complete")(function* (projectId: ProjectId) {
  // Authorization comes before the body is read.
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

/** Reads and parses a request. */
const readWanted = Effect.gen(function* () {
  const input = yield* readBody(CompletionInput, "model and messages")
  const { messages, metadata = {}, model } = input
  yield* keepable({ messages, metadata, model })
  const wanted = yield* Effect.fromResult(readCompletion(input))
  const { headers } = yield* HttpServerRequest.HttpServerRequest
  const conversation = wanted.isHelper ? null : (headers[conversationHeader] ?? wanted.conversation)
  return { ...wanted, conversation }
})

/** Maps our problems to OpenAI's errors. */
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

// The project of a request at the root of the OpenAI endpoint: the only one that its token reaches.
//
// A token that reaches several gets an error that lists the address of each project.

/** The project of a token that reaches exactly one. */
const onlyProject = Effect.gen(function* () {
  const { projectIds } = yield* CurrentPrincipal
  const [projectId, ...others] = projectIds ?? []
  if (projectId !== undefined && others.length === 0) return projectId
  const projects = yield* Projects
  const found = yield* projects.list(projectIds, undefined, openAiLimits.toldProjects + 1)
  const origin = originOf(yield* HttpServerRequest.HttpServerRequest)
  const addresses = found
    .slice(0, openAiLimits.toldProjects)
    .map(({ id, name }) => `${origin}/api/projects/${id}/v1 (${name})`)
  const told = found.length === 0 ? [`${origin}/api/projects/PROJECT/v1`] : addresses
  const more = found.length > told.length ? `, and others that GET ${origin}/api/projects lists` : ""
  return yield* openAiFault(
    `This token reaches more than one project: set the client's base URL to that of one of them: ${told.join(", ")}${more}`,
    { code: "project_required" }
  )
})

// Authenticates OpenAI's clients and answers every failure in their format.

const notKnown = openAiFault("Send a valid token of this server as the API key: Authorization: Bearer …", {
  status: 401,
  code: "invalid_api_key"
})

/** The principal of a token; fails if the token is unknown. */
const makePrincipalOf = Effect.map(Tokens, (tokens) =>
  Effect.fnUntraced(function* (credential: Redacted.Redacted) {
    const principal = Redacted.value(credential) === "" ? undefined : yield* tokens.find(credential)
    return principal ?? (yield* notKnown)
  })
)

export const layerOpenAiAuthorization = Layer.effect(
  OpenAiAuthorization,
  Effect.map(Effect.all([makePrincipalOf, Tokens]), ([principalOf, tokens]) =>
    OpenAiAuthorization.of({
      bearer: (httpEffect, { credential }) =>
        Effect.gen(function* () {
          const principal = yield* principalOf(credential)
          const { url } = yield* HttpServerRequest.HttpServerRequest
          return yield* httpEffect.pipe(
            Effect.provideService(CurrentPrincipal, principalAt(principal, url)),
            Effect.provideService(CurrentCredential, credential),
            Effect.provideService(CurrentHolder, tokens.holderOf(credential))
          )
        })
    })
  )
)

const unavailable = (detail: string) =>
  openAiFault(detail, { status: 503, type: "server_error", code: "unavailable" })

/** Answers a failure in OpenAI's format. A server fault is logged and not shown. */
const answered = <E, R>(httpEffect: Effect.Effect<HttpServerResponse.HttpServerResponse, E, R>) =>
  httpEffect.pipe(
    Effect.catch((error) => {
      const fault = faultOf(error)
      return fault
        ? faultResponse(fault)
        : Effect.andThen(Effect.logError("A completion failed", error), faultResponse(serverFault))
    }),
    Effect.catchDefect((defect) => {
      const detail = passingFault(defect)
      return detail === undefined
        ? Effect.andThen(Effect.logError("A completion failed", defect), faultResponse(serverFault))
        : faultResponse(unavailable(detail))
    })
  )

/** Headers that a page may read. */
const exposed = "x-request-id, x-tropism-conversation, retry-after"

/** Lets pages of allowed origins read an answer. */
const makeReadable = Effect.map(Standing, (standing) =>
  Effect.fnUntraced(function* (response: HttpServerResponse.HttpServerResponse) {
    const { host, origin } = (yield* HttpServerRequest.HttpServerRequest).headers
    const isKnown = findStranger(standing, { host, origin }) === undefined
    return readableBy(isKnown ? origin : undefined, exposed)(response)
  })
)

export const layerOpenAiErrors = Layer.effect(
  OpenAiErrors,
  Effect.map(makeReadable, (readable) =>
    OpenAiErrors.of((httpEffect) => Effect.flatMap(answered(httpEffect), readable))
  )
)

/** The answer to a preflight. */
const asked = ({ allowedOrigins, host }: Standing["Service"], headers: Headers.Headers) => {
  const stranger = findStranger(
    { allowedOrigins, host },
    { host: headers["host"], origin: headers["origin"] }
  )
  return stranger === undefined
    ? Effect.succeed(preflight("GET, POST, DELETE", headers["access-control-request-headers"]))
    : openAiFault(stranger, { status: 403, type: "permission_error", code: "origin_not_allowed" })
}

/** Answers the parts of OpenAI's API that do not exist here, at the root and under a project, for callers with a token. */
export const layerOpenAiMissing = Layer.unwrap(
  Effect.gen(function* () {
    const principalOf = yield* makePrincipalOf
    const readable = yield* makeReadable
    const standing = yield* Standing
    const missing = Effect.gen(function* () {
      const { headers, method, url } = yield* HttpServerRequest.HttpServerRequest
      if (method === "OPTIONS") return yield* asked(standing, headers)
      const [scheme, token = ""] = (headers["authorization"] ?? "").split(" ", 2)
      yield* principalOf(Redacted.make(scheme?.toLowerCase() === "bearer" ? token : ""))
      const [path = ""] = url.split("?", 1)
      return yield* openAiFault(
        `There is no ${method} ${path}: agents answer at POST …/v1/responses and POST …/v1/chat/completions, and GET …/v1/models lists them`,
        { status: 404, code: "unknown_url" }
      )
    })
    const answer = Effect.flatMap(answered(missing), readable)
    const paths = ["/v1/*", "/api/projects/:projectId/v1/*"] as const
    return Layer.mergeAll(
      Layer.empty,
      ...methods.flatMap((method) => paths.map((path) => HttpRouter.add(method, path, answer)))
    )
  })
)

/** All but HEAD, which is answered like GET unless it has its own route. */
const methods = ["GET", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"] as const
