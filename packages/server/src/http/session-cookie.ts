/**
 * The cookie by which a signed-in browser is known.
 *
 * Flow: **http** → graph → outbox → dispatch → run → tool → task
 *
 * Out of reach of scripts and of other sites. Where the server is reached by
 * https the cookie has a name that browsers take from no other host, path or
 * connection, and no other name is believed there.
 */
import { Effect, Redacted } from "effect"
import { type HttpServerRequest, HttpServerResponse } from "effect/http"
import { isByHttps } from "./origins.ts"
import { tokenLimits } from "./token-limits.ts"

type Request = HttpServerRequest.HttpServerRequest

const nameFor = (request: Request): string =>
  isByHttps(request) ? "__Host-tropism_session" : "tropism_session"

/** The session of the browser that sent a request; empty without one. */
export const sessionOf = (request: Request): Redacted.Redacted =>
  Redacted.make(request.cookies[nameFor(request)] ?? "")

const withCookie = (
  request: Request,
  response: HttpServerResponse.HttpServerResponse,
  value: string,
  maxAgeSeconds: number
) =>
  Effect.orDie(
    HttpServerResponse.setCookie(response, nameFor(request), value, {
      httpOnly: true,
      sameSite: "strict",
      secure: isByHttps(request),
      path: "/",
      maxAge: `${maxAgeSeconds} seconds`
    })
  )

/** The answer that keeps a session in the browser. */
export const signedIn = (
  request: Request,
  session: Redacted.Redacted,
  response: HttpServerResponse.HttpServerResponse
) => withCookie(request, response, Redacted.value(session), tokenLimits.sessionMaxAgeSeconds)

/** The answer that takes the session out of the browser. */
export const signedOut = (request: Request, response: HttpServerResponse.HttpServerResponse) =>
  withCookie(request, response, "", 0)
