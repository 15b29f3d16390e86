/**
 * How a browser gets a session, and how it ends it.
 *
 * Flow: **http** → graph → outbox → dispatch → run → tool → task
 *
 * Somebody who makes a browser follow a link of theirs would have its person work
 * under their name. So a link that another site leads to, or that would take the
 * place of somebody else's session, asks first, and only our own page can answer.
 */
import { Unauthorized } from "@tropism/api/problems"
import { Effect, Layer, Redacted } from "effect"
import { HttpRouter, HttpServerRequest, HttpServerRespondable, HttpServerResponse } from "effect/http"
import { bearerOf } from "./authorization.ts"
import { judgePage } from "./own-pages.ts"
import { askingPage, refusedPage } from "./sign-in-pages.ts"
import { sessionOf, signedIn, signedOut } from "./session-cookie.ts"
import { Tokens } from "./tokens.ts"

type Request = HttpServerRequest.HttpServerRequest

const codeOf = ({ url }: Request): Redacted.Redacted =>
  Redacted.make(new URL(url, "http://here").searchParams.get("code") ?? "")

const linkIsOver =
  "This login link was used already or is too old. Ask whoever gave it to you for another; the one that the server prints is new with each start. Or sign in with a token."

/** Exchanges the code for a session, once. */
const enter = Effect.fnUntraced(function* (request: Request) {
  const session = yield* (yield* Tokens).exchange(codeOf(request), request.headers["user-agent"])
  return session === undefined
    ? yield* overFor(request)
    : yield* signedIn(request, session, HttpServerResponse.redirect("/", { status: 303, headers: unseen }))
})

const overFor = ({ headers }: Request) =>
  (headers["accept"] ?? "").includes("text/html")
    ? Effect.succeed(refusedPage(linkIsOver))
    : HttpServerRespondable.toResponse(new Unauthorized({ detail: linkIsOver }))

/** No copy of the answer is kept, and no page behind it is told the address with its code. */
const unseen = { "cache-control": "no-store", "referrer-policy": "no-referrer" }

/** Whether the browser says that another site's page led to this address. */
const isLedHere = ({ headers }: Request): boolean =>
  /^(?:cross-site|same-site)$/.test(headers["sec-fetch-site"] ?? "")

/** The one-time link that the server prints, or an admin made: `GET /login?code=…`. */
const loginLink = HttpRouter.add(
  "GET",
  "/login",
  Effect.gen(function* () {
    const request = yield* HttpServerRequest.HttpServerRequest
    const tokens = yield* Tokens
    const user = yield* tokens.userOfCode(codeOf(request))
    if (user === undefined) return yield* overFor(request)
    const session = sessionOf(request)
    const present = Redacted.value(session) === "" ? undefined : yield* tokens.find(session)
    const isAnothers = present !== undefined && present.userId !== user
    // Whoever only looks at a link, as mail programs do, has not followed it.
    return request.method === "HEAD" || isAnothers || isLedHere(request)
      ? askingPage(user, present?.userId)
      : yield* enter(request)
  })
)

/**
 * Signing in with a token that somebody has, by `Authorization: Bearer …`, which no other
 * site's page can send; or the answer of the page that asked whether a link is to be followed.
 */
const login = HttpRouter.add(
  "POST",
  "/login",
  Effect.gen(function* () {
    const request = yield* HttpServerRequest.HttpServerRequest
    if (Redacted.value(codeOf(request)) !== "") {
      yield* judgePage
      return yield* enter(request)
    }
    const session = yield* (yield* Tokens).openSession(bearerOf(request), request.headers["user-agent"])
    return session
      ? yield* signedIn(request, session, HttpServerResponse.empty({ status: 204 }))
      : yield* HttpServerRespondable.toResponse(new Unauthorized({ detail: "This token is not valid" }))
  }).pipe(Effect.catchTag("ForeignPage", HttpServerRespondable.toResponse))
)

const logout = HttpRouter.add(
  "POST",
  "/logout",
  Effect.gen(function* () {
    const request = yield* HttpServerRequest.HttpServerRequest
    yield* judgePage
    yield* (yield* Tokens).endSession(sessionOf(request))
    return yield* signedOut(request, HttpServerResponse.empty({ status: 204 }))
  }).pipe(Effect.catchTag("ForeignPage", HttpServerRespondable.toResponse))
)

export const layerSigningIn = Layer.mergeAll(loginLink, login, logout)
