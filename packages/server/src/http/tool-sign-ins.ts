/**
 * Where a browser comes back to from the authorization server of an MCP server.
 *
 * Flow: **http** → dispatch → run → tool → task
 *
 * Somebody who makes another person follow a link of theirs would have that
 * person's account used by agents of their own. So a browser that is not signed in
 * as whoever asked is asked first, and one that is somebody else's is refused.
 */
import type { UserId } from "@tropism/domain/ids"
import { Effect, Layer } from "effect"
import { HttpRouter, HttpServerRequest, HttpServerRespondable, HttpServerResponse } from "effect/http"
import { ForeignPage } from "@tropism/api/problems"
import { Database } from "../database/database.ts"
import { clientMetadata } from "../tool/oauth-protocol.ts"
import { ServerRegistry } from "../tool/server-registry.ts"
import { clientDocumentAt, type Done, SignIns } from "../tool/sign-ins.ts"
import { bearerOf } from "./authorization.ts"
import { findStranger, originOf, Standing } from "./origins.ts"
import { judgePage } from "./own-pages.ts"
import { sessionOf } from "./session-cookie.ts"
import { askingToolPage, toolRefusedPage, toolSignedInPage } from "./sign-in-pages.ts"
import { Tokens } from "./tokens.ts"

type Request = HttpServerRequest.HttpServerRequest

/** Who a browser, or a program, is here. */
const personOf = Effect.fnUntraced(function* (request: Request) {
  const tokens = yield* Tokens
  const found = yield* Effect.forEach([bearerOf(request), sessionOf(request)], tokens.find)
  return found.find((principal) => principal !== undefined)?.userId
})

const broughtBy = ({ url }: Request) => {
  const { searchParams } = new URL(url, "http://here")
  const text = (name: string) => searchParams.get(name) ?? undefined
  const [error, description] = [text("error"), text("error_description")]
  return {
    state: text("state") ?? "",
    brought: {
      code: error === undefined ? text("code") : undefined,
      iss: text("iss"),
      error: error === undefined || description === undefined ? error : `${error}, ${description}`
    }
  }
}

/** Uses the state, and looks at a server whose tools nobody knows yet. */
const finish = Effect.fnUntraced(function* (request: Request, person: UserId | undefined) {
  const { brought, state } = broughtBy(request)
  const done = yield* Effect.result((yield* SignIns).finish(state, brought, person))
  if (done._tag === "Failure") return toolRefusedPage(done.failure.detail)
  yield* pinFirst(done.success)
  return toolSignedInPage(done.success.server.config.name)
})

/** Pins what a server lists where nobody could look before; where somebody has, what they saw stays. */
const pinFirst = Effect.fnUntraced(function* ({ askedBy, mayPin, server }: Done) {
  if (!mayPin || server.tools.length > 0 || !server.config.enabled) return
  const registry = yield* ServerRegistry
  const database = yield* Database
  yield* Effect.flatMap(registry.refresh(server, askedBy), (keeping) =>
    database.inProject(server.projectId, keeping)
  ).pipe(
    Effect.scoped,
    // Somebody else has looked meanwhile, or changed the server.
    Effect.catchTag("McpServerRefused", ({ detail }) =>
      Effect.logWarning("A server was signed in to, and its tools are not pinned", { detail })
    )
  )
})

/** The authorization server sends browsers here: `GET /oauth/callback?state=…&code=…`. */
const callback = HttpRouter.add(
  "GET",
  "/oauth/callback",
  Effect.gen(function* () {
    const request = yield* HttpServerRequest.HttpServerRequest
    const person = yield* personOf(request)
    const { brought, state } = broughtBy(request)
    const pending = yield* (yield* SignIns).find(state)
    // Whoever only looks at a link, as mail programs do, has not followed it; where nothing was granted nothing is asked.
    const isGranted = brought.code !== undefined
    const isAsked =
      pending !== undefined && (request.method === "HEAD" || (person === undefined && isGranted))
    return isAsked ? askingToolPage(pending) : yield* finish(request, person)
  })
)

/** The answer of the page that asked. */
const answered = HttpRouter.add(
  "POST",
  "/oauth/callback",
  Effect.gen(function* () {
    const request = yield* HttpServerRequest.HttpServerRequest
    yield* judgePage
    return yield* finish(request, yield* personOf(request))
  }).pipe(Effect.catchTag("ForeignPage", HttpServerRespondable.toResponse))
)

/** What this server says of itself as a client, at the address that is its client id. */
const clientDocument = Layer.unwrap(
  Effect.map(Standing, (standing) =>
    HttpRouter.add(
      "GET",
      "/oauth/client.json",
      Effect.gen(function* () {
        const request = yield* HttpServerRequest.HttpServerRequest
        const stranger = findStranger(standing, { host: request.headers["host"] })
        if (stranger !== undefined)
          return yield* HttpServerRespondable.toResponse(new ForeignPage({ detail: stranger }))
        const origin = originOf(request)
        return HttpServerResponse.jsonUnsafe({
          client_id: clientDocumentAt(origin),
          ...clientMetadata(origin, `${origin}/oauth/callback`)
        })
      })
    )
  )
)

export const layerToolSignIns = Layer.mergeAll(callback, answered, clientDocument)
