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
  HttpServerError,
  HttpServerRequest,
  HttpServerRespondable,
  HttpServerResponse,
  HttpStaticServer
} from "effect/http"
import { HttpApiScalar } from "effect/http-api"
import { httpLimits } from "../limits.ts"
import { bearerOf } from "./authorization.ts"
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
    const secret = bearerOf(request)
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

/**
 * Answers every address that nothing else answers.
 *
 * Only files may be looked for without a token: anybody may learn that there is
 * no such file, and nobody else which addresses of the API there are.
 */
const nothingHere = Layer.unwrap(
  Effect.map(Tokens, (tokens) => {
    const answer = Effect.gen(function* () {
      const request = yield* HttpServerRequest.HttpServerRequest
      const isFile = /^(?:GET|HEAD)$/.test(request.method) && !/^\/api(?:[/?]|$)/.test(request.url)
      const secrets = [bearerOf(request), Redacted.make(request.cookies[cookie] ?? "")]
      const principals = isFile ? [] : yield* Effect.forEach(secrets, tokens.find)
      return yield* isFile || principals.some((principal) => principal !== undefined)
        ? problem(new NotFound({ detail: "There is nothing at this address" }))
        : problem(new Unauthorized({ detail: "Send a valid token: Authorization: Bearer …" }))
    })
    return Layer.mergeAll(
      HttpRouter.middleware(
        (httpEffect) =>
          Effect.catch(httpEffect, (error) =>
            HttpServerError.isHttpServerError(error) && error.reason._tag === "RouteNotFound"
              ? answer
              : Effect.fail(error)
          ),
        { global: true }
      ),
      // Else the console, which has an answer for every address, would answer for the API too.
      HttpRouter.add("GET", "/api/*", answer)
    )
  })
)

/** The console's files from a folder, once it is built. A name that no file can have is a file that is missing. */
const consoleFiles = (folder: string | undefined) =>
  folder === undefined
    ? Layer.empty
    : Layer.unwrap(
        Effect.map(HttpStaticServer.make({ root: folder, spa: true, cacheControl: "no-cache" }), (files) =>
          HttpRouter.add("GET", "/*", Effect.catch(files, missing))
        )
      )

const missing = (error: HttpServerError.HttpServerError) => {
  const notFound = new HttpServerError.HttpServerError({
    reason: new HttpServerError.RouteNotFound({ request: error.request })
  })
  return error.reason._tag === "RouteNotFound"
    ? Effect.fail(notFound)
    : Effect.andThen(Effect.logWarning("A file could not be read", error), Effect.fail(notFound))
}

export const layerPages = (consoleFolder: string | undefined) =>
  Layer.mergeAll(
    loginLink,
    loginToken,
    logout,
    nothingHere,
    consoleFiles(consoleFolder),
    HttpApiScalar.layer(Api, { path: "/docs" })
  )
