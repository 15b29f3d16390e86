/**
 * Middleware around every endpoint: request id, access log, rate limit, security headers, trace and origin checks.
 *
 * A request is counted before anything else of it is read. The endpoint decides only the format of a refusal.
 */
import { TooManyRequests, type Unavailable, ForeignPage, MalformedRequest } from "@tropism/api/problems"
import { Clock, Context, Effect, Predicate } from "effect"
import {
  HttpEffect,
  HttpRouter,
  HttpServerRequest,
  HttpServerRespondable,
  HttpServerResponse,
  HttpBody
} from "effect/http"
import { Ids } from "../ids.ts"
import { countRateLimited, countRequest } from "../telemetry/metrics.ts"
import { Spans, spanIdOf, traceIdOfText } from "../telemetry/tracing.ts"
import { comeAgain, stopsWith, Readiness } from "./listener.ts"
import { faultOf, faultResponse } from "./openai/faults.ts"
import { oneForm, preflight, readableBy, findStranger, Standing } from "./origins.ts"
import { RateLimits, type Quota, quotaHeaders } from "./rate-limits.ts"
import { CurrentRequest, type Visit } from "./request-context.ts"

/** Runs before all routes that it is provided to. */
export const layerEdge = HttpRouter.middleware(
  Effect.gen(function* () {
    const { count } = yield* RateLimits
    const requestId = yield* makeRequestId
    const beginSpan = yield* makeRequestSpans
    const { isStopping } = yield* Readiness
    const judged = yield* judgeForeignPages
    return Effect.fnUntraced(function* <E, R>(
      httpEffect: Effect.Effect<HttpServerResponse.HttpServerResponse, E, R>
    ) {
      const id = yield* requestId
      const visit: Visit = { id, admitted: undefined, route: undefined }
      const { method, url } = yield* HttpServerRequest.HttpServerRequest
      const guard = guarded(url)
      const span = yield* beginSpan(visit)
      const startMs = yield* Clock.currentTimeMillis
      yield* HttpEffect.appendPreResponseHandler((_, response) =>
        Effect.as(
          Effect.flatMap(Clock.currentTimeMillis, (nowMs) =>
            countRequest(method, visit.route, response.status, nowMs - startMs)
          ),
          response
        )
      )
      if (span !== undefined)
        yield* HttpEffect.appendPreResponseHandler((_, response) =>
          Effect.as(span.tell(response.status), response)
        )
      yield* HttpEffect.appendPreResponseHandler((_, response) =>
        Effect.flatMap(isStopping, (isLast) =>
          Effect.map(isLast ? lastOne(url, response) : Effect.succeed(response), (sent) =>
            namedBy(id)(guard(challenged(sent)))
          )
        )
      )
      const counted = yield* count
      if (counted !== undefined) {
        const { answered, quota } = counted
        yield* HttpEffect.appendPreResponseHandler((_, response) =>
          Effect.as(answered(response, visit), HttpServerResponse.setHeaders(response, quotaHeaders(quota)))
        )
        if (quota.retryAfterSeconds > 0) return yield* refused(quota)
      }
      const answer = yield* judged
      if (answer !== undefined) return answer
      return yield* Effect.annotateLogs(
        Effect.provideService(noted(httpEffect, visit), CurrentRequest, visit),
        span === undefined ? { requestId: id } : { requestId: id, traceId: span.traceId }
      )
    }, atOneAddress)
  }),
  { global: true }
)

/** Records the route that a request took, whatever its outcome. */
const noted = <A, E, R>(httpEffect: Effect.Effect<A, E, R>, visit: Visit) =>
  Effect.onExit(httpEffect, () =>
    Effect.withFiber(({ context }) => {
      visit.route = Context.getOrUndefined(context, HttpRouter.RouteContext)?.route.path
      return Effect.void
    })
  )

/** Normalizes the URL before anything else reads it. */
const atOneAddress = <A, E, R>(effect: Effect.Effect<A, E, R>) =>
  Effect.updateService(effect, HttpServerRequest.HttpServerRequest, (request) => {
    const url = oneForm(request.url)
    return url === request.url ? request : request.modify({ url })
  })

/** Adds WWW-Authenticate to a 401, as RFC 9110 § 15.5.2 requires, unless the endpoint sets its own. */
const challenged = (response: HttpServerResponse.HttpServerResponse) =>
  response.status === 401 && response.headers["www-authenticate"] === undefined
    ? HttpServerResponse.setHeader(response, "www-authenticate", 'Bearer realm="tropism"')
    : response

/** Closes the connection of a stopping server after this answer; a request that is cut off gets an answer too. */
const lastOne = (url: string, response: HttpServerResponse.HttpServerResponse) =>
  Effect.map(
    response.status === 503 && response.body._tag === "Empty"
      ? Effect.map(told(url, stopsWith(cutOff)), comeAgain)
      : Effect.succeed(response),
    HttpServerResponse.setHeader("connection", "close")
  )

const cutOff =
  "The server stopped before this was answered: ask another one, and send a POST again under its Idempotency-Key, so that nothing is done twice"

const refused = Effect.fnUntraced(function* ({ policy, retryAfterSeconds }: Quota) {
  const { url } = yield* HttpServerRequest.HttpServerRequest
  yield* countRateLimited(policy.name)
  const problem = new TooManyRequests({
    reason: "rate",
    detail:
      policy.name === "token"
        ? "This token asks more often than it may: go on more slowly"
        : "Too many requests without a valid token come from this address: go on more slowly, with a token",
    retryAfterSeconds
  })
  return yield* told(url, problem)
})

/** A refusal in the format of the requested endpoint. */
const told = (url: string, problem: TooManyRequests | Unavailable) => {
  const fault = isForOpenAi(url) ? faultOf(problem) : undefined
  return fault === undefined ? HttpServerRespondable.toResponse(problem) : faultResponse(fault)
}

/** Whether a request is for the endpoint whose errors have OpenAI's format. */
const isForOpenAi = (url: string): boolean => /^(?:\/api\/projects\/[^/?#]+)?\/v1(?:[/?#]|$)/.test(url)

// The request id: in the answer, in the log and in support questions.
//
// A client or a proxy before us may set it, so that both sides use the same. It is only reported: two requests may have the same id.

export const requestIdHeader = "x-request-id"

/** The format of a client's id: visible characters, and short enough for a log line. */
const fit = /^[\x21-\x7e]{1,128}$/

/** The client's id, or a new one where the client sent no valid one. */
const makeRequestId = Effect.map(Ids, ({ next }) =>
  Effect.flatMap(HttpServerRequest.HttpServerRequest, ({ headers }) => {
    const given = headers[requestIdHeader]
    return given !== undefined && fit.test(given) ? Effect.succeed(given) : next
  })
)

/** Adds the id to an answer: in a header, and as `instance` of a problem document. */
const namedBy =
  (id: string) =>
  (response: HttpServerResponse.HttpServerResponse): HttpServerResponse.HttpServerResponse =>
    HttpServerResponse.setHeader(withInstance(response, id), requestIdHeader, id)

const withInstance = (response: HttpServerResponse.HttpServerResponse, id: string) => {
  const { body } = response
  if (body._tag !== "Uint8Array" || !body.contentType.startsWith("application/problem+json")) return response
  const problem: object = JSON.parse(new TextDecoder().decode(body.body))
  const told = JSON.stringify({ ...problem, instance: `/requests/${encodeURIComponent(id)}` })
  return HttpServerResponse.setBody(response, HttpBody.text(told, body.contentType))
}

// Security headers of every answer.
//
// An answer that sets its own keeps them. API answers are never pages and are not cached. Our pages run only their own scripts, connect
// only to this server and cannot be framed.

/** For the console. Its components set inline styles, hence 'unsafe-inline' for styles. */
export const consolePolicy =
  "default-src 'self'; style-src 'self' 'unsafe-inline'; img-src 'self' data: blob:; object-src 'none'; base-uri 'none'; form-action 'self'; frame-ancestors 'none'"

/** For pages without external resources. */
const plainPolicy =
  "default-src 'none'; style-src 'unsafe-inline'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'"

/** For `/docs`, whose page has an inline script. */
const docsPolicy =
  "default-src 'self'; script-src 'unsafe-inline'; style-src 'self' 'unsafe-inline'; font-src 'self' data:; img-src 'self' data: blob:; object-src 'none'; base-uri 'none'; form-action 'self'; frame-ancestors 'none'"

/** For answers that are not pages: a browser that opens one displays it and runs nothing. */
const dataPolicy = "default-src 'none'; sandbox; frame-ancestors 'none'"

/** Adds the missing security headers to the answer for an address. */
const guarded =
  (url: string) =>
  (response: HttpServerResponse.HttpServerResponse): HttpServerResponse.HttpServerResponse => {
    const wanted = {
      "x-content-type-options": "nosniff",
      "referrer-policy": "same-origin",
      "x-frame-options": "DENY",
      // A 304 has no content type: the browser keeps the policy that came with the page.
      ...(response.status === 304
        ? {}
        : { "content-security-policy": policyOf(url, response.headers["content-type"] ?? "") }),
      ...(isOfApi(url) ? { "cache-control": "no-store" } : {})
    }
    return HttpServerResponse.setHeaders(response, { ...wanted, ...response.headers })
  }

const isOfApi = (url: string): boolean => /^\/(?:api|v1|mcp|metrics|health|ready)(?:[/?#]|$)/i.test(url)

const policyOf = (url: string, contentType: string): string => {
  if (isOfApi(url)) return dataPolicy
  if (/^\/docs(?:[?#]|$)/i.test(url)) return docsPolicy
  return /^\/problems(?:[/?#]|$)/i.test(url) || !contentType.startsWith("text/html")
    ? plainPolicy
    : consolePolicy
}

// The span of a request, for the telemetry collector.
//
// It carries the request id of the answer and the log. A caller's own trace (W3C Trace Context) is recorded and decides nothing; without
// one the trace id is derived from the request id.

export interface RequestSpan {
  readonly traceId: string
  /** Ends the span with the status of the answer. */
  readonly tell: (status: number) => Effect.Effect<void>
}

const traceparent = /^00-(?!0{32})([0-9a-f]{32})-(?!0{16})([0-9a-f]{16})-[0-9a-f]{2}$/

/** Starts the span of a request; undefined while no collector is configured. */
const makeRequestSpans = Effect.gen(function* () {
  const spans = yield* Spans
  const { next } = yield* Ids
  return Effect.fnUntraced(function* (visit: Visit) {
    if (!spans.isOn) return undefined
    const { headers, method } = yield* HttpServerRequest.HttpServerRequest
    const startMs = yield* Clock.currentTimeMillis
    const [, givenTrace, parentId = null] = traceparent.exec(headers["traceparent"] ?? "") ?? []
    const traceId = givenTrace ?? traceIdOfText(visit.id)
    const id = spanIdOf("request", yield* next)
    const tell = (status: number) =>
      Effect.map(Clock.currentTimeMillis, (endMs) =>
        spans.emit({
          traceId,
          id,
          parentId,
          name: visit.route === undefined ? method : `${method} ${visit.route}`,
          kind: "server",
          startMs,
          endMs,
          attributes: {
            "http.request.method": method,
            "http.route": visit.route,
            "http.response.status_code": status,
            "tropism.request.id": visit.id,
            "error.type": status >= 500 ? String(status) : undefined
          },
          error: status >= 500 ? `Answered with ${status}` : null
        })
      )
    const span: RequestSpan = { traceId, tell }
    return span
  })
})

// Checks Host and Origin of API requests.
//
// A page that points its own name at this server (DNS rebinding) sends that name as Host, which is not ours. Pages of other origins may
// only read, only where the operator allows it, and never with a session: no answer lets a browser send its cookie from there. The MCP and
// OpenAI endpoints do their own checks.

/** Headers that a page of another origin may read. */
const exposed = "etag, idempotency-replayed, location, ratelimit, ratelimit-policy, retry-after, x-request-id"

const methods = "GET, HEAD, POST, PUT, PATCH, DELETE"

const ofApi = /^\/(?:api|openapi\.json)(?:[/?#]|$)/i
const ownForm = /^\/api\/projects\/[^/?#]+\/(?:mcp|v1)(?:[/?#]|$)/i

const hostTwice = new MalformedRequest({
  detail:
    "The request has more than one Host header: whoever stands between could have judged it by the other"
})

/** The number of Host headers of a request; the framework keeps only the first. */
const hostsOf = (source: object): number =>
  Predicate.hasProperty(source, "rawHeaders") && Array.isArray(source.rawHeaders)
    ? source.rawHeaders.filter((name, index) => index % 2 === 0 && /^host$/i.test(String(name))).length
    : 0

/** The refusal of a request that the API must not answer; undefined where the request may go on. */
const judgeForeignPages = Effect.map(Standing, (standing) =>
  Effect.gen(function* () {
    const { headers, method, source, url } = yield* HttpServerRequest.HttpServerRequest
    if (hostsOf(source) > 1) return yield* HttpServerRespondable.toResponse(hostTwice)
    if (!ofApi.test(url) || ownForm.test(url)) return undefined
    const { host, origin } = headers
    // A token is accepted from any origin; for cookies `origins.ts` checks the origin.
    const stranger = findStranger(standing, { host })
    if (stranger !== undefined)
      return yield* HttpServerRespondable.toResponse(new ForeignPage({ detail: stranger }))
    if (origin === undefined || !standing.allowedOrigins.includes(origin)) return undefined
    yield* HttpEffect.appendPreResponseHandler((_, response: HttpServerResponse.HttpServerResponse) =>
      Effect.succeed(readableBy(origin, exposed)(response))
    )
    const isPreflight = method === "OPTIONS" && headers["access-control-request-method"] !== undefined
    return isPreflight ? preflight(methods, headers["access-control-request-headers"]) : undefined
  })
)
