/**
 * What every request meets before any door, and every answer behind it.
 *
 * Flow: **http** → graph → outbox → dispatch → run → tool → task
 *
 * A request has an id, which its answer and the lines of the log tell. It is
 * counted, and who asks too often is told when to come back before
 * anything of the request is read. Which door it is for plays no part, but in
 * the form of the refusal.
 */
import { TooManyRequests, type Unavailable } from "@tropism/api/problems"
import { Clock, Context, Effect } from "effect"
import {
  HttpEffect,
  HttpRouter,
  HttpServerRequest,
  HttpServerRespondable,
  HttpServerResponse
} from "effect/http"
import { countRateLimited, countRequest } from "../telemetry/figures.ts"
import { oneForm } from "./addresses.ts"
import { comeAgain, stopsWith } from "./closing.ts"
import { judgeForeignPages } from "./foreign-pages.ts"
import { faultOf, faultResponse } from "./openai-faults.ts"
import { guarded } from "./guarded.ts"
import { RateLimits } from "./rate-limits.ts"
import { Readiness } from "./readiness.ts"
import { makeRequestId, namedBy } from "./request-ids.ts"
import { makeRequestSpans } from "./request-spans.ts"
import { type Quota, quotaHeaders } from "./token-buckets.ts"
import { CurrentVisit, type Visit } from "./visit.ts"

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
        Effect.provideService(noted(httpEffect, visit), CurrentVisit, visit),
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
