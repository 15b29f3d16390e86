/**
 * What is not the API: signing in, the console's files, the contract, and 404.
 *
 * Flow: **http** → graph → outbox → dispatch → run → tool → task
 */
import { Api } from "@tropism/api/api"
import { NotFound, Unauthorized } from "@tropism/api/problems"
import { Effect, Layer, Redacted } from "effect"
import {
  HttpRouter,
  HttpServerRequest,
  HttpServerRespondable,
  HttpServerResponse,
  HttpStaticServer
} from "effect/http"
import { HttpApiScalar } from "effect/http-api"
import { httpLimits } from "../limits.ts"
import { Tokens } from "./tokens.ts"

const cookie = "tropism_session"

/** Keeps a secret in the browser, out of reach of scripts and other sites. */
const signedIn = (secret: Redacted.Redacted, response: HttpServerResponse.HttpServerResponse) =>
  Effect.orDie(
    HttpServerResponse.setCookie(response, cookie, Redacted.value(secret), {
      httpOnly: true,
      sameSite: "strict",
      path: "/",
      maxAge: `${httpLimits.sessionMaxAgeSeconds} seconds`
    })
  )

const problem = (found: NotFound | Unauthorized) => HttpServerRespondable.toResponse(found)

/** The one-time link that the server prints: `GET /login?code=…`. */
const loginLink = HttpRouter.add(
  "GET",
  "/login",
  Effect.gen(function* () {
    const request = yield* HttpServerRequest.HttpServerRequest
    const code = new URL(request.url, "http://here").searchParams.get("code") ?? ""
    const session = yield* (yield* Tokens).exchange(Redacted.make(code))
    if (!session)
      return yield* problem(
        new Unauthorized({
          detail:
            "This login link was used already or is too old. Start the server again for a new one, or sign in with a token."
        })
      )
    return yield* signedIn(session, HttpServerResponse.redirect("/", { status: 303 }))
  })
)

/** Signing in with a token that somebody has: `POST /login` with `Authorization: Bearer …`. */
const loginToken = HttpRouter.add(
  "POST",
  "/login",
  Effect.gen(function* () {
    const request = yield* HttpServerRequest.HttpServerRequest
    const [scheme, token] = (request.headers["authorization"] ?? "").split(" ", 2)
    const secret = Redacted.make(scheme?.toLowerCase() === "bearer" ? (token ?? "") : "")
    const principal = yield* (yield* Tokens).find(secret)
    return principal
      ? yield* signedIn(secret, HttpServerResponse.empty({ status: 204 }))
      : yield* problem(new Unauthorized({ detail: "This token is not valid" }))
  })
)

const logout = HttpRouter.add(
  "POST",
  "/logout",
  Effect.orDie(
    HttpServerResponse.setCookie(HttpServerResponse.empty({ status: 204 }), cookie, "", {
      path: "/",
      maxAge: 0
    })
  )
)

const notFound = problem(new NotFound({ detail: "There is nothing at this address" }))

/** Every address that nothing else answers. The console, where it is built, has all others. */
const nothingHere = Layer.mergeAll(
  HttpRouter.add("*", "/api/*", notFound),
  HttpRouter.add("POST", "/*", notFound),
  HttpRouter.add("PUT", "/*", notFound),
  HttpRouter.add("PATCH", "/*", notFound),
  HttpRouter.add("DELETE", "/*", notFound)
)

/** The console's files from a folder; without one, a sentence that says what is missing. */
const consoleFiles = (folder: string | undefined) =>
  folder === undefined
    ? HttpRouter.add("GET", "/*", notFound)
    : HttpStaticServer.layer({ root: folder, spa: true, cacheControl: "no-cache" })

export const layerPages = (consoleFolder: string | undefined) =>
  Layer.mergeAll(
    loginLink,
    loginToken,
    logout,
    nothingHere,
    consoleFiles(consoleFolder),
    HttpApiScalar.layer(Api, { path: "/docs" })
  )
