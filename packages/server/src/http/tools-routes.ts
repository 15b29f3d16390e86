/**
 * Endpoints for a project's external tools.
 *
 * Authorization comes first; then the server is contacted with no transaction open; the result is stored in a transaction that authorizes
 * again.
 */
import { Api } from "@tropism/api/api"
import { CurrentPrincipal, includesRole, type Principal, type Role } from "@tropism/api/authorization"
import { Conflict, Forbidden, type InvalidInput } from "@tropism/api/problems"
import type { McpServerId, ProjectId } from "@tropism/domain/ids"
import { type McpTransport, oauthOf } from "@tropism/domain/mcp-server"
import { Effect, type Scope } from "effect"
import { HttpServerRequest } from "effect/http"
import { HttpApiBuilder } from "effect/http-api"
import { localFault } from "../tools/external-mcp/faults.ts"
import type { SignInFault } from "../tools/external-mcp/oauth-protocol.ts"
import { type Keeping, ServerRegistry } from "../tools/external-mcp/registry.ts"
import { type KeptServer, type McpServerRefused, McpServers } from "../tools/external-mcp/servers.ts"
import { SignIns } from "../tools/external-mcp/sign-ins.ts"
import { inProject, looking, reading, unlessRecalled } from "./access.ts"
import { originOf } from "./origins.ts"
import { onVersion, taggedLoosely, pageById } from "./paging.ts"
import { invalid, keepable, orNotFound } from "./problems.ts"
import { CurrentRequest } from "./request-context.ts"

const known = orNotFound("MCP server")

export const mcpServersHandlers = HttpApiBuilder.group(Api, "mcpServers", (handlers) =>
  handlers.handleAll({
    create: Effect.fn("http.mcpServers.create")(function* ({ params, payload }) {
      yield* keepable(payload)
      const registry = yield* ServerRegistry
      const by = yield* looking(params.projectId, "admin", (principal) =>
        Effect.as(mayName(principal, payload.transport), principal.userId)
      )
      return yield* kept(params.projectId, registry.add(params.projectId, payload, by))
    }),
    list: Effect.fn("http.mcpServers.list")(function* ({ params, query }) {
      const servers = yield* McpServers
      return yield* reading(
        params.projectId,
        pageById(query, (before, limit) =>
          Effect.flatMap(CurrentPrincipal, ({ userId }) => servers.list(before, limit, userId))
        )
      )
    }),
    get: Effect.fn("http.mcpServers.get")(function* ({ params }) {
      const servers = yield* McpServers
      const { userId } = yield* CurrentPrincipal
      const server = known(reading(params.projectId, servers.get(params.mcpServerId, userId)))
      return yield* Effect.flatMap(server, taggedLoosely)
    }),
    update: Effect.fn("http.mcpServers.update")(function* ({ params, headers, payload }) {
      yield* keepable(payload)
      const registry = yield* ServerRegistry
      const { expectedVersion, ...patch } = payload
      const before = yield* found(params)
      const principal = yield* CurrentPrincipal
      yield* mayName(principal, patch.transport)
      return yield* onVersion(headers, expectedVersion, (terms) =>
        kept(params.projectId, registry.change(before, patch, principal.userId, terms))
      )
    }),
    refresh: Effect.fn("http.mcpServers.refresh")(function* ({ params }) {
      const registry = yield* ServerRegistry
      const before = yield* found(params)
      const { userId } = yield* CurrentPrincipal
      return yield* kept(params.projectId, registry.refresh(before, userId))
    }),
    signIn: Effect.fn("http.mcpServers.signIn")(function* ({ params }) {
      const signIns = yield* SignIns
      const origin = originOf(yield* HttpServerRequest.HttpServerRequest)
      const { asker, role, server } = yield* signer(params)
      const begun = Effect.flatMap(refusing(signIns.begin(server, asker, origin)), (keeping) =>
        inProject(params.projectId, role, () => refusing(keeping))
      )
      return yield* unlessRecalled(params.projectId, role, begun)
    }),
    signOut: Effect.fn("http.mcpServers.signOut")(function* ({ params }) {
      const signIns = yield* SignIns
      const { asker, role, server } = yield* signer(params)
      // The tokens are already deleted here, whatever the authorization server answers.
      yield* yield* looking(params.projectId, role, () => signIns.end(server, asker.userId))
    }),
    remove: Effect.fn("http.mcpServers.remove")(function* ({ params }) {
      const servers = yield* McpServers
      const removed = inProject(params.projectId, "admin", () => servers.delete(params.mcpServerId))
      yield* known(Effect.map(removed, (done) => done || undefined))
    })
  })
)

/** Refuses local servers unless the operator allows them for this caller. */
const mayName = Effect.fnUntraced(function* (
  { projectIds }: Principal,
  transport: McpTransport | null | undefined
) {
  const fault = transport ? yield* localFault(transport, projectIds === null) : undefined
  if (fault !== undefined) return yield* new Forbidden({ detail: fault })
})

/** A server, and who signs in to it: an admin, or each member separately. */
const signer = Effect.fnUntraced(function* ({ mcpServerId, projectId }: Params) {
  const servers = yield* McpServers
  const server: KeptServer = yield* known(looking(projectId, "viewer", () => servers.find(mcpServerId)))
  const role: Role = oauthOf(server.config)?.per === "member" ? "viewer" : "admin"
  const visit = yield* CurrentRequest
  const asker = yield* looking(projectId, role, (principal) =>
    Effect.succeed({
      userId: principal.userId,
      credential: visit?.admitted?.credential,
      mayPin: includesRole(principal.role, "admin")
    })
  )
  return { server, role, asker }
})

const refusing = <A, R>(effect: Effect.Effect<A, SignInFault, R>) =>
  Effect.mapError(effect, ({ detail }) => new Conflict({ reason: "state", detail }))

interface Params {
  readonly projectId: ProjectId
  readonly mcpServerId: McpServerId
}

/** The server before its change, for a caller who may change it. */
const found = Effect.fnUntraced(function* (params: Params) {
  const servers = yield* McpServers
  const server: KeptServer = yield* known(
    looking(params.projectId, "admin", () => servers.find(params.mcpServerId))
  )
  return server
})

/** Stores the tools of a listing; a repeat under the same key gets the first listing. */
const kept = (projectId: ProjectId, looked: Effect.Effect<Keeping, McpServerRefused, Scope.Scope>) =>
  unlessRecalled(
    projectId,
    "admin",
    Effect.flatMap(Effect.mapError(looked, problemOf), (keeping) =>
      inProject(projectId, "admin", () => Effect.mapError(keeping, problemOf))
    ).pipe(Effect.scoped)
  ).pipe(Effect.flatMap(taggedLoosely))

const problemOf = ({ detail, pointer, reason }: McpServerRefused): Conflict | InvalidInput =>
  reason === "invalid" ? invalid(pointer, detail) : new Conflict({ reason, detail })
