/**
 * Lets OpenAI's clients in, and answers whatever goes wrong in the form that they read.
 *
 * Flow: **http** → chat → dispatch → run → tool → task
 */
import { CurrentPrincipal } from "@tropism/api/authorization"
import { OpenAiAuthorization, OpenAiErrors } from "@tropism/api/openai-api"
import { Effect, Layer, Redacted } from "effect"
import { HttpRouter, HttpServerRequest, HttpServerResponse } from "effect/http"
import { Ids } from "../ids.ts"
import { faultOf, faultResponse, openAiFault, serverFault } from "./openai-faults.ts"
import { isDatabaseAway } from "./request-problems.ts"
import { Tokens } from "./tokens.ts"

const notKnown = openAiFault("Send a valid token of this server as the API key: Authorization: Bearer …", {
  status: 401,
  code: "invalid_api_key"
})

/** The principal of a token; refused when nobody knows it. */
const makePrincipalOf = Effect.map(Tokens, (tokens) =>
  Effect.fnUntraced(function* (credential: Redacted.Redacted) {
    const principal = Redacted.value(credential) === "" ? undefined : yield* tokens.find(credential)
    return principal ?? (yield* notKnown)
  })
)

export const layerOpenAiAuthorization = Layer.effect(
  OpenAiAuthorization,
  Effect.map(makePrincipalOf, (principalOf) =>
    OpenAiAuthorization.of({
      bearer: (httpEffect, { credential }) =>
        Effect.flatMap(principalOf(credential), (principal) =>
          Effect.provideService(httpEffect, CurrentPrincipal, principal)
        )
    })
  )
)

const unavailable = openAiFault("The database does not answer: try again in a moment", {
  status: 503,
  type: "server_error",
  code: "unavailable"
})

/** Answers a failure in OpenAI's form; what no request is to blame for is logged and not shown. */
const answered = <E, R>(httpEffect: Effect.Effect<HttpServerResponse.HttpServerResponse, E, R>) =>
  httpEffect.pipe(
    Effect.catch((error) => {
      const fault = faultOf(error)
      return fault
        ? faultResponse(fault)
        : Effect.andThen(Effect.logError("A completion failed", error), faultResponse(serverFault))
    }),
    Effect.catchDefect((defect) =>
      isDatabaseAway(defect)
        ? faultResponse(unavailable)
        : Effect.andThen(Effect.logError("A completion failed", defect), faultResponse(serverFault))
    )
  )

/** Gives an answer the id by which it is spoken of. */
const makeNamed = Effect.map(
  Ids,
  (ids) => (response: HttpServerResponse.HttpServerResponse) =>
    Effect.map(ids.next, (id) =>
      HttpServerResponse.setHeader(response, "x-request-id", `req_${id.replaceAll("-", "")}`)
    )
)

export const layerOpenAiErrors = Layer.effect(
  OpenAiErrors,
  Effect.map(makeNamed, (named) =>
    OpenAiErrors.of((httpEffect) => Effect.flatMap(answered(httpEffect), named))
  )
)

/** What of OpenAI's API there is not, at the root and under a project: told to whoever has a token. */
export const layerOpenAiMissing = Layer.unwrap(
  Effect.gen(function* () {
    const principalOf = yield* makePrincipalOf
    const named = yield* makeNamed
    const missing = Effect.gen(function* () {
      const { headers, method, url } = yield* HttpServerRequest.HttpServerRequest
      const [scheme, token = ""] = (headers["authorization"] ?? "").split(" ", 2)
      yield* principalOf(Redacted.make(scheme?.toLowerCase() === "bearer" ? token : ""))
      const [path] = url.split("?", 1)
      return yield* openAiFault(
        `There is no ${method} ${path}: agents are spoken to at POST …/v1/chat/completions and listed at GET …/v1/models`,
        { status: 404, code: "unknown_url" }
      )
    })
    const answer = Effect.flatMap(answered(missing), named)
    return Layer.mergeAll(
      HttpRouter.add("*", "/v1/*", answer),
      HttpRouter.add("*", "/api/projects/:projectId/v1/*", answer)
    )
  })
)
