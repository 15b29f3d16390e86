/**
 * Which names the API may be called by, and which pages elsewhere may call it.
 *
 * Flow: **http** → graph → outbox → dispatch → run → tool → task
 *
 * A page that gives its own name the address of this server (DNS rebinding) calls
 * it by that name, which is not ours. Pages elsewhere may read only where the
 * operator says so, and never with a session: no answer lets a browser send its
 * cookie from there. The doors for MCP and for OpenAI's clients judge for themselves.
 */
import { ForeignPage, MalformedRequest } from "@tropism/api/problems"
import { Effect, Predicate } from "effect"
import { HttpEffect, HttpServerRequest, HttpServerRespondable, type HttpServerResponse } from "effect/http"
import { preflight, readableBy } from "./cross-origin.ts"
import { findStranger, Standing } from "./origins.ts"

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
export const judgeForeignPages = Effect.map(Standing, (standing) =>
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
