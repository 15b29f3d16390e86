/** The routes of the MCP endpoint: `/mcp`, one per project, and their metadata. */
import { ProtocolErrorCode } from "@modelcontextprotocol/server"
import { Unauthorized } from "@tropism/api/problems"
import { ProjectId } from "@tropism/domain/ids"
import { Effect, Layer, Redacted } from "effect"
import { HttpRouter, HttpServerRequest, HttpServerRespondable, HttpServerResponse } from "effect/http"
import type { Database } from "../database/database.ts"
import { howToGetIn, Permits } from "../http/access.ts"
import { bearerOf } from "../http/authentication.ts"
import { TrustedIssuer } from "../http/jwt.ts"
import { preflight, readableBy, originOf, Standing } from "../http/origins.ts"
import { version } from "../http/tenancy-routes.ts"
import type { Tokens } from "../http/tokens.ts"
import { digestOf } from "../review/task-digest.ts"
import type { Projects } from "../tenancy/projects.ts"
import type { Offer } from "./capability.ts"
import { makeEndpoint, judgeStranger, readMessage, webRequest } from "./endpoint.ts"
import { eventsPart } from "./event-delivery.ts"
import { mcpLimits } from "./limits.ts"
import { peopleTools } from "./people-tools.ts"
import { peoplePrompts } from "./prompts.ts"
import { ResourceUpdates, peopleResources } from "./resources.ts"
import { asHttp, rpcFault, toServerFault, findPlace, type Place, fault } from "./server.ts"
import { makeSessionStream } from "./sessions.ts"
import { tasksPart } from "./tasks.ts"

const words = {
  name: "tropism",
  title: "Tropism",
  version,
  instructions:
    "A shared knowledge graph with agents that react when it changes. Read and change the graph, keep your todos, and see what agents did and why. What you do is done in your name, within your role."
}

/** The HTTP methods of the protocol. */
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
  const door = yield* makeEndpoint
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
    // A caller whose rights changed, such as the role, must open a new stream.
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

/** Adds to a 401 where a client finds the authorization metadata (RFC 9728). */
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

// All capability modules, in the order in which clients see their offers.

/** The modules with their services. */
const parts = Effect.all([peopleTools, peopleResources, peoplePrompts, tasksPart, eventsPart])

// The root for a token that reaches several projects: only lists, and the addresses to use.
//
// The project of a call is never an argument, so no call is possible here. Every call gets an error with the addresses of the projects.

/** No project has this id: modules list their offers for it, and none of their work runs. */
const nowhere = ProjectId.make("00000000-0000-0000-0000-000000000000")

/** The addresses, as text for a client. */
const addressesOf = (origin: string, projectIds: ReadonlyArray<string> | null): string => {
  const shown = projectIds?.slice(0, mcpLimits.toldProjects) ?? []
  const names = shown.length === 0 ? ["{projectId}"] : shown
  const more = shown.length < (projectIds?.length ?? 0) ? " (and others)" : ""
  return `This token reaches several projects. Connect to the address of one of them: ${names
    .map((id) => `${origin}/api/projects/${id}/mcp`)
    .join(" or ")}${more}. GET ${origin}/api/projects lists them.`
}

/** The same offer, reduced to its lists. */
const listsOnly =
  (advice: string) =>
  (offer: Offer): Offer => {
    const refuse = Effect.fail(fault(ProtocolErrorCode.InvalidRequest, advice))
    const { prompts, resources, tools } = offer
    return {
      ...(tools && {
        tools: tools.map(({ listed }) => ({
          listed,
          call: () => Effect.succeed({ isError: true, content: [{ type: "text" as const, text: advice }] })
        }))
      }),
      ...(prompts && { prompts: prompts.map(({ listed }) => ({ listed, get: () => refuse })) }),
      ...(resources && {
        resources: {
          list: () => Effect.succeed({ resources: [] }),
          templates: resources.templates,
          read: () => refuse
        }
      })
    }
  }
