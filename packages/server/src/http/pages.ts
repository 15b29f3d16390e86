/**
 * What is not the API: the console's files, the contract, what problems mean, and 404.
 *
 * Flow: **http** → graph → outbox → dispatch → run → tool → task
 */
import { Api } from "@tropism/api/api"
import { MethodNotAllowed, NotFound, Unauthorized } from "@tropism/api/problems"
import { Effect, Layer } from "effect"
import {
  HttpRouter,
  HttpServerError,
  HttpServerRequest,
  HttpServerRespondable,
  HttpServerResponse,
  HttpStaticServer
} from "effect/http"
import { HttpApiScalar } from "effect/http-api"
import { makeMethodsAt } from "./addresses.ts"
import { bearerOf } from "./authorization.ts"
import { sessionOf } from "./session-cookie.ts"
import { layerSigningIn } from "./signing-in.ts"
import { layerProblemPages } from "./problem-pages.ts"
import { Tokens } from "./tokens.ts"
import { layerToolSignIns } from "./tool-sign-ins.ts"

const problem = (found: MethodNotAllowed | NotFound | Unauthorized) => HttpServerRespondable.toResponse(found)

const nothing = problem(new NotFound({ detail: "There is nothing at this address" }))

/** The addresses beside the API's. */
const methodsAt = makeMethodsAt({
  "/docs": ["GET"],
  "/openapi.json": ["GET"],
  "/problems": ["GET"],
  "/problems/:name": ["GET"],
  "/login": ["GET", "POST"],
  "/logout": ["POST"],
  "/oauth/callback": ["GET", "POST"],
  "/oauth/client.json": ["GET"]
})

/** Of an address that there is, what may be asked of it. */
const allowing = Effect.fnUntraced(function* (method: string, methods: ReadonlyArray<string>) {
  const allow = methods.join(", ")
  const answer =
    method === "OPTIONS"
      ? HttpServerResponse.empty({ status: 204 })
      : yield* problem(
          new MethodNotAllowed({ detail: `${method} cannot be asked of this address, but ${allow}` })
        )
  return HttpServerResponse.setHeader(answer, "allow", allow)
})

type Files = Effect.Effect<
  HttpServerResponse.HttpServerResponse,
  HttpServerError.HttpServerError,
  HttpServerRequest.HttpServerRequest
>

/**
 * Answers every address that nothing else answers.
 *
 * A browser on its way to a page gets the console, also where the address has a
 * form that no file's has: the console says what is wrong, and leads on. Only files may be looked for without a token: anybody may learn that there is
 * no such file, and nobody else which addresses of the API there are.
 */
const nothingHere = (page: Files | undefined) =>
  Layer.unwrap(
    Effect.map(Tokens, (tokens) => {
      const answer = Effect.gen(function* () {
        const request = yield* HttpServerRequest.HttpServerRequest
        const isFile = /^(?:GET|HEAD)$/.test(request.method) && !/^\/api(?:[/?]|$)/.test(request.url)
        if (isFile && page !== undefined && isForPeople(request))
          return yield* Effect.catch(page, () => nothing)
        const secrets = [bearerOf(request), sessionOf(request)]
        const principals = isFile ? [] : yield* Effect.forEach(secrets, tokens.find)
        if (!isFile && principals.every((principal) => principal === undefined))
          return yield* problem(new Unauthorized({ detail: "Send a valid token: Authorization: Bearer …" }))
        const methods = methodsAt(request.url)
        // What may be asked and came to nothing has an id that nothing can have.
        const isKnown =
          methods.length > 0 && (request.method === "OPTIONS" || !methods.includes(request.method))
        return yield* isKnown && !isFile ? allowing(request.method, methods) : nothing
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

const isForPeople = (request: HttpServerRequest.HttpServerRequest): boolean =>
  request.headers["accept"]?.includes("text/html") === true

/** The console's files from a folder, once it is built. A name that no file can have is a file that is missing. */
const consoleFiles = (folder: string) =>
  Layer.unwrap(
    Effect.map(HttpStaticServer.make({ root: folder, spa: true, cacheControl: "no-cache" }), (files) =>
      Layer.mergeAll(nothingHere(firstOf(files)), HttpRouter.add("GET", "/*", Effect.catch(files, missing)))
    )
  )

/** The page that every screen's address is answered with, whatever was asked for. */
const firstOf = (files: Files): Files =>
  Effect.updateService(files, HttpServerRequest.HttpServerRequest, (request) =>
    request.modify({ url: "/index.html" })
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
    layerSigningIn,
    layerToolSignIns,
    layerProblemPages,
    consoleFolder === undefined ? nothingHere(undefined) : consoleFiles(consoleFolder),
    HttpApiScalar.layer(Api, { path: "/docs", scalar: { withDefaultFonts: false } })
  )
