/**
 * The door for clients of OpenAI's API: each agent of a project is a model.
 *
 * A contract of its own beside `Api`, because everything here is said in OpenAI's
 * form, errors too. At the root it is the door of a token that reaches one project.
 */
import { ProjectId } from "@tropism/domain/ids"
import { Schema } from "effect"
import {
  HttpApi,
  HttpApiEndpoint,
  HttpApiGroup,
  HttpApiMiddleware,
  HttpApiSchema,
  HttpApiSecurity,
  OpenApi
} from "effect/http-api"
import { alsoStreamed } from "./also-streamed.ts"
import { CurrentPrincipal } from "./authorization.ts"
import { Completion, CompletionInput } from "./openai-completions.ts"
import { AgentResponse, DeletedResponse, ResponseInput } from "./openai-responses.ts"
import { told } from "./page.ts"
import { sayOperations } from "./said-operations.ts"

/** How OpenAI's API says no. */
export const OpenAiError = Schema.Struct({
  error: Schema.Struct({
    message: Schema.String,
    type: Schema.String,
    /** The field of the request that is wrong. */
    param: Schema.NullOr(Schema.String),
    code: Schema.NullOr(Schema.String)
  })
}).annotate({ identifier: "OpenAiError" })
export type OpenAiError = typeof OpenAiError.Type

const failing = (status: number) => OpenAiError.pipe(HttpApiSchema.status(status))

/** Lets in whoever has a token, which OpenAI's clients call an API key. */
export class OpenAiAuthorization extends HttpApiMiddleware.Service<
  OpenAiAuthorization,
  { provides: CurrentPrincipal }
>()("@tropism/api/OpenAiAuthorization", {
  error: [failing(401)],
  security: { bearer: HttpApiSecurity.bearer }
}) {}

/** Says in OpenAI's form whatever goes wrong, and gives each answer an id. */
export class OpenAiErrors extends HttpApiMiddleware.Service<OpenAiErrors>()("@tropism/api/OpenAiErrors", {
  error: [400, 403, 404, 413, 422, 429, 500, 503].map(failing)
}) {}

/** An agent, as a client lists it among the models. */
export const AgentModel = Schema.Struct({
  id: Schema.String,
  object: Schema.Literal("model"),
  created: Schema.Int,
  owned_by: Schema.String
}).annotate({ identifier: "AgentModel" })
export type AgentModel = typeof AgentModel.Type

export const AgentModelList = Schema.Struct({
  object: Schema.Literal("list"),
  data: Schema.Array(AgentModel)
}).annotate({ identifier: "AgentModelList" })

/** Goes on in a conversation that an answer named. */
const headers = {
  "x-tropism-conversation": Schema.optional(Schema.String),
  "idempotency-key": Schema.optional(Schema.String)
}

const inProject = { projectId: ProjectId }
const oneModel = { model: Schema.String }
const oneResponse = { responseId: Schema.String }

/** How a response is read. */
const ResponseQuery = {
  stream: told(Schema.Literals(["true", "false"]), "Whether it comes as events, from the first one on"),
  starting_after: told(Schema.String, "Refused: a stream begins with its first event")
}

/** Under the address of a project. */
export class ProjectCompletionsApi extends HttpApiGroup.make("projectCompletions")
  .add(
    /**
     * Says the last message to an agent, behind all that the client brings of the conversation, and answers with what
     * it says. With `stream: true` the answer comes as server-sent events, each a `chat.completion.chunk`.
     */
    HttpApiEndpoint.post("complete", "/chat/completions", {
      params: inProject,
      headers,
      payload: CompletionInput,
      success: Completion
    }).annotateMerge(alsoStreamed),
    /**
     * Says the newest input to an agent, in the conversation of the previous response or after all that the client brings,
     * and answers with what it says and does. With `stream: true` the answer comes as server-sent events.
     */
    HttpApiEndpoint.post("respond", "/responses", {
      params: inProject,
      headers,
      payload: ResponseInput,
      success: AgentResponse
    }).annotateMerge(alsoStreamed),
    HttpApiEndpoint.get("response", "/responses/:responseId", {
      params: { ...inProject, ...oneResponse },
      query: ResponseQuery,
      success: AgentResponse
    }).annotateMerge(alsoStreamed),
    HttpApiEndpoint.delete("deleteResponse", "/responses/:responseId", {
      params: { ...inProject, ...oneResponse },
      success: DeletedResponse
    }),
    HttpApiEndpoint.post("cancelResponse", "/responses/:responseId/cancel", {
      params: { ...inProject, ...oneResponse },
      success: AgentResponse
    }),
    /** The agents that can be spoken to. */
    HttpApiEndpoint.get("models", "/models", { params: inProject, success: AgentModelList }),
    HttpApiEndpoint.get("model", "/models/:model", {
      params: { ...inProject, ...oneModel },
      success: AgentModel
    })
  )
  .prefix("/api/projects/:projectId/v1")
  .middleware(OpenAiAuthorization)
  .middleware(OpenAiErrors) {}

/** At the root, for a token that reaches one project. */
export class CompletionsApi extends HttpApiGroup.make("completions")
  .add(
    /** As under the address of the project that the token reaches. */
    HttpApiEndpoint.post("complete", "/chat/completions", {
      headers,
      payload: CompletionInput,
      success: Completion
    }).annotateMerge(alsoStreamed),
    HttpApiEndpoint.post("respond", "/responses", {
      headers,
      payload: ResponseInput,
      success: AgentResponse
    }).annotateMerge(alsoStreamed),
    HttpApiEndpoint.get("response", "/responses/:responseId", {
      params: oneResponse,
      query: ResponseQuery,
      success: AgentResponse
    }).annotateMerge(alsoStreamed),
    HttpApiEndpoint.delete("deleteResponse", "/responses/:responseId", {
      params: oneResponse,
      success: DeletedResponse
    }),
    HttpApiEndpoint.post("cancelResponse", "/responses/:responseId/cancel", {
      params: oneResponse,
      success: AgentResponse
    }),
    HttpApiEndpoint.get("models", "/models", { success: AgentModelList }),
    HttpApiEndpoint.get("model", "/models/:model", { params: oneModel, success: AgentModel })
  )
  .prefix("/v1")
  .middleware(OpenAiAuthorization)
  .middleware(OpenAiErrors) {}

export class OpenAiApi extends HttpApi.make("openai")
  .add(ProjectCompletionsApi)
  .add(CompletionsApi)
  .annotateMerge(
    OpenApi.annotations({
      title: "Tropism for OpenAI clients",
      version: "0.1.0",
      description: "Responses and chat completions, in which each agent of a project is a model."
    })
  )
  .annotate(OpenApi.Transform, sayOperations) {}
