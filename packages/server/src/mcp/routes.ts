/**
 * The addresses of the MCP door: `/mcp`, one for each project, and what clients look up about them.
 *
 * Flow: **mcp** → graph → outbox → dispatch → run → tool → task
 */
import { ByteSize, Context, Effect, Layer, Redacted, Schedule } from "effect"
import {
  HttpIncomingMessage,
  HttpRouter,
  HttpServerRequest,
  HttpServerRespondable,
  HttpServerResponse
} from "effect/http"
import { Unauthorized } from "@tropism/api/problems"
import type { Database } from "../database/database.ts"
import type { Projects } from "../database/projects.ts"
import { bearerOf } from "../http/authorization.ts"
import { streamLimits } from "../http/stream-limits.ts"
import { version } from "../http/system-handlers.ts"
import type { Tokens } from "../http/tokens.ts"
import { httpLimits } from "../limits.ts"
import { digestOf } from "../task/digest.ts"
import { asHttp, toServerFault } from "./answers.ts"
import { findPlace, type Place } from "./caller.ts"
import { preflight, readableBy } from "./cross-origin.ts"
import { makeDoor } from "./door.ts"
import { doorServer } from "./door-server.ts"
import { fixtureOffer } from "./fixtures.ts"
import type { Standing } from "./origins.ts"
import { parts } from "./parts.ts"
import { judgeStranger, originOf, readMessage, webRequest } from "./requests.ts"
import { addressesOf, listsOnly, nowhere } from "./spanning.ts"

/** What the operator decides about the door. */
export class McpStanding extends Context.Service<McpStanding, Standing>()(
  "@tropism/server/mcp/McpStanding"
) {}

const words = {
  name: "tropism",
  title: "Tropism",
  version,
  instructions:
    "A shared knowledge graph with agents that react when it changes. Read and change the graph, keep your todos, and see what agents did and why. What you do is done in your name, within your role."
}

const fixturePath = "/mcp-fixtures"
const metadataPath = "/.well-known/oauth-protected-resource"
const projectPattern = /^\/api\/projects\/(?<projectId>[^/?#]+)\/mcp(?:[?#]|$)/

/** What a server is bound to. */
interface Bound {
  readonly place: Place
  readonly origin: string
  readonly tokenHash: string
}

const mcpRoutes = Effect.gen(function* () {
  const standing = yield* McpStanding
  const door = yield* makeDoor
  const offered = yield* parts
  const services = yield* Effect.context<Database | Projects | Tokens>()

  const newServer = ({ place, origin, tokenHash }: Bound) => {
    const { principal, projectId } = place
    const offers = offered.map((part) =>
      part.offerTo({ principal, projectId: projectId ?? nowhere, tokenHash })
    )
    return projectId === null ? offers.map(listsOnly(addressesOf(origin, principal.projectIds))) : offers
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
      newServer: (run) => doorServer(words, newServer({ place, origin, tokenHash }), run)
    })
    const lost = find.pipe(
      Effect.repeat(Schedule.spaced(streamLimits.permitIntervalMs)),
      Effect.catch(() => Effect.void)
    )
    return asHttp(response, message.body, lost)
  })

  const answer = Effect.gen(function* () {
    const request = yield* HttpServerRequest.HttpServerRequest
    yield* judgeStranger(standing)
    const readable = readableBy(request.headers["origin"])
    if (request.method === "OPTIONS")
      return readable(preflight(request.headers["access-control-request-headers"]))
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
    return readableBy(request.headers["origin"])(
      HttpServerResponse.jsonUnsafe({
        resource: `${originOf(request)}${resource === "" ? "/mcp" : resource}`,
        resource_name: words.title,
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

/** The same door before the fixtures of the conformance suite; it asks for no token. */
const fixtureRoutes = Effect.gen(function* () {
  const standing = yield* McpStanding
  const door = yield* makeDoor
  const offers = [fixtureOffer(door.notify)]
  const answer = Effect.gen(function* () {
    const request = yield* HttpServerRequest.HttpServerRequest
    yield* judgeStranger(standing)
    const message = yield* readMessage
    if ("refusal" in message) return HttpServerResponse.fromWeb(message.refusal)
    const response = yield* door.serve({
      request: webRequest(request),
      body: message.body,
      bearer: "nobody",
      binding: "nobody",
      newServer: (run) => doorServer({ ...words, name: "tropism-fixtures" }, offers, run)
    })
    return asHttp(response, message.body, Effect.never)
  }).pipe(Effect.catch(HttpServerRespondable.toResponse), Effect.catchDefect(toServerFault))
  return HttpRouter.add("*", fixturePath, answer)
})

/** The routes, until the scope ends. */
export const layerMcpRoutes = (withFixtures: boolean) =>
  Layer.mergeAll(Layer.unwrap(mcpRoutes), withFixtures ? Layer.unwrap(fixtureRoutes) : Layer.empty).pipe(
    Layer.provide(Layer.succeed(HttpIncomingMessage.MaxBodySize, ByteSize.bytes(httpLimits.bodyMaxBytes)))
  )

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
