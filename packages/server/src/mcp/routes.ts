/**
 * The addresses of the MCP door: `/mcp`, one for each project, and what clients look up about them.
 *
 * Flow: **mcp** → graph → outbox → dispatch → run → tool → task
 */
import { Cause, ByteSize, Context, Effect, Layer, Redacted, Schedule, Stream } from "effect"
import {
  HttpIncomingMessage,
  HttpRouter,
  HttpServerRequest,
  HttpServerRespondable,
  HttpServerResponse
} from "effect/http"
import { type NotFound, ServerFault, Unauthorized } from "@tropism/api/problems"
import type { Database } from "../database/database.ts"
import type { Projects } from "../database/projects.ts"
import { bearerOf } from "../http/authorization.ts"
import { streamLimits } from "../http/stream-limits.ts"
import { version } from "../http/system-handlers.ts"
import type { Tokens } from "../http/tokens.ts"
import { httpLimits } from "../limits.ts"
import { digestOf } from "../task/digest.ts"
import { findPlace, type Place } from "./caller.ts"
import { preflight, readableBy } from "./cross-origin.ts"
import { makeDoor } from "./door.ts"
import { doorServer } from "./door-server.ts"
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
    return withPermit(response, find, request.method === "GET" ? begun : new Uint8Array())
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
  }).pipe(Effect.catch(HttpServerRespondable.toResponse), Effect.catchDefect(serverFault))

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
  }).pipe(Effect.catch(HttpServerRespondable.toResponse), Effect.catchDefect(serverFault))

  return Layer.mergeAll(
    HttpRouter.add("*", "/mcp", answer),
    HttpRouter.add("*", "/api/projects/:projectId/mcp", answer),
    HttpRouter.add("GET", metadataPath, metadata),
    HttpRouter.add("GET", `${metadataPath}/mcp`, metadata),
    HttpRouter.add("GET", `${metadataPath}/api/projects/:projectId/mcp`, metadata)
  )
})

/** The routes, until the scope ends. */
export const layerMcpRoutes = Layer.unwrap(mcpRoutes).pipe(
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

/** A comment with which a stream that may be quiet for long says that it is open. */
const begun = new TextEncoder().encode(": open\n\n")

/** A stream goes on while its credential is known and reaches the project. */
const withPermit = (
  response: Response,
  find: Effect.Effect<Place, NotFound | Unauthorized>,
  first: Uint8Array
) => {
  const { body } = response
  if (body === null || response.headers.get("content-type") !== "text/event-stream")
    return HttpServerResponse.fromWeb(response)
  const lost = find.pipe(
    Effect.repeat(Schedule.spaced(streamLimits.permitIntervalMs)),
    Effect.catch(() => Effect.void)
  )
  return HttpServerResponse.stream(
    Stream.succeed(first).pipe(
      Stream.concat(Stream.fromReadableStream({ evaluate: () => body, onError: (error) => error })),
      Stream.interruptWhen(lost)
    ),
    { status: response.status, headers: Object.fromEntries(response.headers) }
  )
}

const serverFault = (defect: unknown) =>
  Effect.logError("An MCP request failed", Cause.die(defect)).pipe(
    Effect.andThen(
      HttpServerRespondable.toResponse(new ServerFault({ detail: "The server failed; its log says why" }))
    )
  )
