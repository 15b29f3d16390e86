/**
 * Lets OpenAI's clients in, and answers whatever goes wrong in the form that they read.
 *
 * Flow: **http** → chat → dispatch → run → tool → task
 */
import { CurrentPrincipal } from "@tropism/api/authorization"
import { OpenAiAuthorization, OpenAiErrors } from "@tropism/api/openai-api"
import { Effect, Layer, Redacted } from "effect"
import { type Headers, HttpRouter, HttpServerRequest, type HttpServerResponse } from "effect/http"
import { CurrentCredential, CurrentHolder } from "./authorization.ts"
import { preflight, readableBy } from "./cross-origin.ts"
import { faultOf, faultResponse, openAiFault, serverFault } from "./openai-faults.ts"
import { findStranger, Standing } from "./origins.ts"
import { passingFault } from "../database/database-away.ts"
import { principalAt } from "./principal-at.ts"
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

/** Answers a failure in OpenAI's form; what no request is to blame for is logged and not shown. */
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

/** Lets the pages read an answer that may. */
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

/** What a browser is told that asks whether a page may call. */
const asked = ({ allowedOrigins, host }: Standing["Service"], headers: Headers.Headers) => {
  const stranger = findStranger(
    { allowedOrigins, host },
    { host: headers["host"], origin: headers["origin"] }
  )
  return stranger === undefined
    ? Effect.succeed(preflight("GET, POST, DELETE", headers["access-control-request-headers"]))
    : openAiFault(stranger, { status: 403, type: "permission_error", code: "origin_not_allowed" })
}

/** What of OpenAI's API there is not, at the root and under a project: told to whoever has a token. */
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

/** All but HEAD, which is answered as GET is where nothing else answers it. */
const methods = ["GET", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"] as const
