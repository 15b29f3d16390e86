/**
 * What every request meets before any door, and every answer behind it.
 *
 * A request has an id, which its answer and the lines of the log tell. It is
 * counted, and who asks too often is told when to come back before
 * anything of the request is read. Which door it is for plays no part, but in
 * the form of the refusal.
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

/** Stands before all routes that it is provided to. */
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

/** Notes which route a request took, however it ended. */
const noted = <A, E, R>(httpEffect: Effect.Effect<A, E, R>, visit: Visit) =>
  Effect.onExit(httpEffect, () =>
    Effect.withFiber(({ context }) => {
      visit.route = Context.getOrUndefined(context, HttpRouter.RouteContext)?.route.path
      return Effect.void
    })
  )

/** Lets nothing see an address but in its one form. */
const atOneAddress = <A, E, R>(effect: Effect.Effect<A, E, R>) =>
  Effect.updateService(effect, HttpServerRequest.HttpServerRequest, (request) => {
    const url = oneForm(request.url)
    return url === request.url ? request : request.modify({ url })
  })

/** Who is not let in is told by what one comes in, as RFC 9110 § 15.5.2 has it; a door that says more of it says so itself. */
const challenged = (response: HttpServerResponse.HttpServerResponse) =>
  response.status === 401 && response.headers["www-authenticate"] === undefined
    ? HttpServerResponse.setHeader(response, "www-authenticate", 'Bearer realm="tropism"')
    : response

/** The connection of a server that stops is not asked again; a request that it cuts off is told so, and not answered without a word. */
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

/** A refusal in the form of the door that is asked. */
const told = (url: string, problem: TooManyRequests | Unavailable) => {
  const fault = isForOpenAi(url) ? faultOf(problem) : undefined
  return fault === undefined ? HttpServerRespondable.toResponse(problem) : faultResponse(fault)
}

/** Whether a request is for the door whose refusals have OpenAI's form. */
const isForOpenAi = (url: string): boolean => /^(?:\/api\/projects\/[^/?#]+)?\/v1(?:[/?#]|$)/.test(url)

// The id by which a request is spoken of: in its answer, in the log, and by whoever asks about it.
//
// A client, or a proxy before us, may give its own, so that both sides speak of
// the same. It is told and logged, and decides nothing: two requests may have one.

export const requestIdHeader = "x-request-id"

/** What a client's id may be: visible, and short enough for every line of a log. */
const fit = /^[\x21-\x7e]{1,128}$/

/** The client's id, or a new one where it gave none that is fit. */
const makeRequestId = Effect.map(Ids, ({ next }) =>
  Effect.flatMap(HttpServerRequest.HttpServerRequest, ({ headers }) => {
    const given = headers[requestIdHeader]
    return given !== undefined && fit.test(given) ? Effect.succeed(given) : next
  })
)

/** The answer with the id: in a header, and in a problem document as its `instance`. */
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

// What every answer tells a browser not to do with it.
//
// An answer that says so by itself is left as it is. What the API answers is
// nobody's page and is kept nowhere; a page of ours runs its own scripts alone,
// speaks to its own server alone and stands in no frame.

/** Of the console. Its components set styles by themselves, hence 'unsafe-inline' for these. */
export const consolePolicy =
  "default-src 'self'; style-src 'self' 'unsafe-inline'; img-src 'self' data: blob:; object-src 'none'; base-uri 'none'; form-action 'self'; frame-ancestors 'none'"

/** Of pages that are whole in themselves. */
const plainPolicy =
  "default-src 'none'; style-src 'unsafe-inline'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'"

/** Of `/docs`, whose page has its script in it. */
const docsPolicy =
  "default-src 'self'; script-src 'unsafe-inline'; style-src 'self' 'unsafe-inline'; font-src 'self' data:; img-src 'self' data: blob:; object-src 'none'; base-uri 'none'; form-action 'self'; frame-ancestors 'none'"

/** Of what is no page: a browser that opens it shows it and does nothing else. */
const dataPolicy = "default-src 'none'; sandbox; frame-ancestors 'none'"

/** The answer to a request for an address, with what it does not say by itself. */
const guarded =
  (url: string) =>
  (response: HttpServerResponse.HttpServerResponse): HttpServerResponse.HttpServerResponse => {
    const wanted = {
      "x-content-type-options": "nosniff",
      "referrer-policy": "same-origin",
      "x-frame-options": "DENY",
      // That a kept page is still right says no type: the browser goes on with the policy that came with the page.
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

// The span of a request, for whoever collects spans.
//
// It carries the id by which the request's answer and its lines of the log
// speak of it. A caller that traces gives its own trace (W3C Trace Context),
// which is told and decides nothing; else the trace follows from the request's id.

export interface RequestSpan {
  readonly traceId: string
  /** Tells of the request, with the head of its answer. */
  readonly tell: (status: number) => Effect.Effect<void>
}

const traceparent = /^00-(?!0{32})([0-9a-f]{32})-(?!0{16})([0-9a-f]{16})-[0-9a-f]{2}$/

/** Begins the span of a request; undefined while nobody collects any. */
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

// Which names the API may be called by, and which pages elsewhere may call it.
//
// A page that gives its own name the address of this server (DNS rebinding) calls
// it by that name, which is not ours. Pages elsewhere may read only where the
// operator says so, and never with a session: no answer lets a browser send its
// cookie from there. The doors for MCP and for OpenAI's clients judge for themselves.

/** Headers that a page elsewhere may read. */
const exposed = "etag, idempotency-replayed, location, ratelimit, ratelimit-policy, retry-after, x-request-id"

const methods = "GET, HEAD, POST, PUT, PATCH, DELETE"

const ofApi = /^\/(?:api|openapi\.json)(?:[/?#]|$)/i
const ownForm = /^\/api\/projects\/[^/?#]+\/(?:mcp|v1)(?:[/?#]|$)/i

const hostTwice = new MalformedRequest({
  detail:
    "The request has more than one Host header: whoever stands between could have judged it by the other"
})

/** How often a request says which host it is for; the framework keeps the first alone. */
const hostsOf = (source: object): number =>
  Predicate.hasProperty(source, "rawHeaders") && Array.isArray(source.rawHeaders)
    ? source.rawHeaders.filter((name, index) => index % 2 === 0 && /^host$/i.test(String(name))).length
    : 0

/** Answers in place of the API what it is not to be asked; undefined where the request may go on. */
const judgeForeignPages = Effect.map(Standing, (standing) =>
  Effect.gen(function* () {
    const { headers, method, source, url } = yield* HttpServerRequest.HttpServerRequest
    if (hostsOf(source) > 1) return yield* HttpServerRespondable.toResponse(hostTwice)
    if (!ofApi.test(url) || ownForm.test(url)) return undefined
    const { host, origin } = headers
    // Where a token comes from does not matter, and whence a cookie is believed own-pages.ts says.
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
