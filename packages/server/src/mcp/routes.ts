/**
 * The addresses of the MCP door: `/mcp`, one for each project, and what clients look up about them.
 *
 * Flow: **mcp** → graph → outbox → dispatch → run → tool → task
 */
import { Effect, Layer, Redacted } from "effect"
import { HttpRouter, HttpServerRequest, HttpServerRespondable, HttpServerResponse } from "effect/http"
import { Unauthorized } from "@tropism/api/problems"
import type { Database } from "../database/database.ts"
import type { Projects } from "../database/projects.ts"
import { howToGetIn } from "../http/access.ts"
import { bearerOf } from "../http/authorization.ts"
import { preflight, readableBy } from "../http/cross-origin.ts"
import { originOf, Standing } from "../http/origins.ts"
import { Permits } from "../http/permits.ts"
import { version } from "../http/system-handlers.ts"
import type { Tokens } from "../http/tokens.ts"
import { TrustedIssuer } from "../http/trusted-issuer.ts"
import { digestOf } from "../task/digest.ts"
import { asHttp, rpcFault, toServerFault } from "./answers.ts"
import { findPlace, type Place } from "./caller.ts"
import { makeDoor } from "./door.ts"
import { parts } from "./parts.ts"
import { judgeStranger, readMessage, webRequest } from "./requests.ts"
import { ResourceUpdates } from "./resource-updates.ts"
import { makeSessionStream } from "./session-stream.ts"
import { addressesOf, listsOnly, nowhere } from "./spanning.ts"

const words = {
  name: "tropism",
  title: "Tropism",
  version,
  instructions:
    "A shared knowledge graph with agents that react when it changes. Read and change the graph, keep your todos, and see what agents did and why. What you do is done in your name, within your role."
}

/** What the protocol asks for, over HTTP. */
const methods = ["GET", "POST", "DELETE"]

/** Headers that a page may read. */
const exposed = "mcp-session-id, mcp-protocol-version, www-authenticate"

const metadataPath = "/.well-known/oauth-protected-resource"
const projectPattern = /^\/api\/projects\/(?<projectId>[^/?#]+)\/mcp(?:[?#]|$)/

/** What a server is bound to. */
interface Bound {
  readonly place: Place
  readonly origin: string
  readonly tokenHash: string
}

const mcpRoutes = Effect.gen(function* () {
  const standing = yield* Standing
  const issuer = yield* TrustedIssuer
  const door = yield* makeDoor
  const offered = yield* parts
  const updates = yield* ResourceUpdates
  const permits = yield* Permits
  const openEnded = yield* makeSessionStream
  const services = yield* Effect.context<Database | Projects | Tokens>()

  const offersTo = ({ place, origin, tokenHash }: Bound) => {
    const { principal, projectId } = place
    const offers = offered.map((part) =>
      part.offerTo({ principal, projectId: projectId ?? nowhere, tokenHash })
    )
    return projectId === null
      ? offers.map(listsOnly(howToGetIn(principal) ?? addressesOf(origin, principal.projectIds)))
      : offers
  }

  const serve = Effect.gen(function* () {
    const request = yield* HttpServerRequest.HttpServerRequest
    const path = request.url.replace(/[?#].*$/s, "")
    const secret = bearerOf(request)
    const projectId = projectPattern.exec(request.url)?.groups?.["projectId"] ?? null
    const find = Effect.provideContext(findPlace(secret, projectId), services)
    const place = yield* find
    const message = yield* readMessage
    if ("refusal" in message) return HttpServerResponse.fromWeb(message.refusal)
    const origin = originOf(request)
    const tokenHash = yield* digestOf(Redacted.value(secret))
    const response = yield* door.serve({
      request: webRequest(request),
      body: message.body,
      bearer: `${path} ${tokenHash}`,
      binding: JSON.stringify([place, origin]),
      owner: `${place.projectId} ${place.principal.userId}`,
      words,
      offers: () => offersTo({ place, origin, tokenHash })
    })
    const found = JSON.stringify(place)
    // Who is somebody else by now, of another role say, opens a stream as that.
    const lost = permits.lost({
      key: `${path} ${tokenHash} ${found}`,
      holds: Effect.match(find, { onFailure: () => false, onSuccess: (now) => JSON.stringify(now) === found })
    })
    const sessionId = request.headers["mcp-session-id"]
    const { projectId: within } = place
    if (request.method === "DELETE" && response.ok && sessionId !== undefined && within !== null)
      yield* updates.forget(within, sessionId)
    const listening = within === null ? undefined : { projectId: within, tokenHash }
    return asHttp(response, message.body, openEnded(request.method, listening, sessionId, lost))
  })

  const answer = Effect.gen(function* () {
    const request = yield* HttpServerRequest.HttpServerRequest
    yield* judgeStranger(standing)
    const readable = readableBy(request.headers["origin"], exposed)
    if (request.method === "OPTIONS")
      return readable(preflight(methods.join(", "), request.headers["access-control-request-headers"]))
    if (!methods.includes(request.method))
      return readable(
        HttpServerResponse.fromWeb(
          rpcFault(405, -32_000, "Method not allowed", undefined, { allow: methods.join(", ") })
        )
      )
    return readable(
      yield* Effect.catch(serve, (problem) =>
        Effect.map(HttpServerRespondable.toResponse(problem), challenged(problem, request))
      )
    )
  }).pipe(Effect.catch(HttpServerRespondable.toResponse), Effect.catchDefect(toServerFault))

  const metadata = Effect.gen(function* () {
    const request = yield* HttpServerRequest.HttpServerRequest
    yield* judgeStranger(standing)
    const resource = new URL(request.url, originOf(request)).pathname.slice(metadataPath.length)
    return readableBy(
      request.headers["origin"],
      exposed
    )(
      HttpServerResponse.jsonUnsafe({
        resource: `${originOf(request)}${resource === "" ? "/mcp" : resource}`,
        resource_name: words.title,
        ...(issuer !== undefined && URL.canParse(issuer.name) && { authorization_servers: [issuer.name] }),
        bearer_methods_supported: ["header"],
        resource_documentation: `${originOf(request)}/docs`
      })
    )
  }).pipe(Effect.catch(HttpServerRespondable.toResponse), Effect.catchDefect(toServerFault))

  return Layer.mergeAll(
    HttpRouter.add("*", "/mcp", answer),
    HttpRouter.add("*", "/api/projects/:projectId/mcp", answer),
    HttpRouter.add("GET", metadataPath, metadata),
    HttpRouter.add("GET", `${metadataPath}/mcp`, metadata),
    HttpRouter.add("GET", `${metadataPath}/api/projects/:projectId/mcp`, metadata)
  )
})

/** The routes, until the scope ends. */
export const layerMcpRoutes = Layer.unwrap(mcpRoutes)

/** Says with a 401 where a client learns what would open the door (RFC 9728). */
const challenged =
  (problem: unknown, request: HttpServerRequest.HttpServerRequest) =>
  (response: HttpServerResponse.HttpServerResponse) =>
    problem instanceof Unauthorized
      ? HttpServerResponse.setHeader(
          response,
          "www-authenticate",
          `Bearer realm="tropism", resource_metadata="${originOf(request)}${metadataPath}${request.url.replace(/[?#].*$/s, "")}"`
        )
      : response
