/**
 * The foreign MCP servers of a project: added, looked at again, changed, removed.
 *
 * No answer holds a secret: a definition names them. What a server listed when
 * somebody last looked stands in the answer, as agents see it.
 */
import { McpServerId, ProjectId, Timestamp } from "@tropism/domain/ids"
import { McpServer, McpServerInput, McpServerPatch } from "@tropism/domain/mcp-server"
import { Schema } from "effect"
import { HttpApiEndpoint, HttpApiGroup, HttpApiSchema } from "effect/http-api"
import { Authorization, RequestJudgement } from "./authorization.ts"
import { expectedVersion, ifMatch } from "./expected-version.ts"
import { Page, PageQuery } from "./page.ts"
import { Conflict, Forbidden, InvalidInput, NotFound, PreconditionFailed } from "./problems.ts"

/** The fields of a server that change, and the version that the caller changes. */
export const McpServerChange = Schema.Struct({ ...McpServerPatch.fields, ...expectedVersion }).annotate({
  identifier: "McpServerChange"
})

/** Where somebody signs in to a server. */
export const SignInLink = Schema.Struct({
  /** The authorization server's page; whoever agrees there comes back to this server. */
  url: Schema.String,
  /** The link is for whoever asked, can be used once, and until then. */
  expiresAt: Timestamp
}).annotate({ identifier: "SignInLink" })

const project = { projectId: ProjectId }
const server = { ...project, mcpServerId: McpServerId }

export class McpServersApi extends HttpApiGroup.make("mcpServers")
  .add(
    /** Connects and pins what is listed; a server that cannot be reached is kept with `lastError` and no tools, a disabled one with no tools. */
    HttpApiEndpoint.post("create", "/mcp-servers", {
      params: project,
      payload: McpServerInput,
      success: McpServer.pipe(HttpApiSchema.status(201)),
      error: [NotFound, Forbidden, Conflict, InvalidInput]
    }),
    HttpApiEndpoint.get("list", "/mcp-servers", {
      params: project,
      query: PageQuery,
      success: Page(McpServer),
      error: [NotFound, InvalidInput]
    }),
    HttpApiEndpoint.get("get", "/mcp-servers/:mcpServerId", {
      params: server,
      success: McpServer,
      error: [NotFound]
    }),
    /** Another name or transport is looked at anew, and so is a server without tools that is enabled. Under another name it is the same: where it cannot be reached, its tools stay. */
    HttpApiEndpoint.patch("update", "/mcp-servers/:mcpServerId", {
      params: server,
      headers: ifMatch,
      payload: McpServerChange,
      success: McpServer,
      error: [NotFound, Forbidden, Conflict, InvalidInput, PreconditionFailed]
    }),
    /** Connects and pins what is listed now: from then on agents see that. */
    HttpApiEndpoint.post("refresh", "/mcp-servers/:mcpServerId/refresh", {
      params: server,
      success: McpServer,
      error: [NotFound, Forbidden, Conflict, InvalidInput]
    }),
    /** Answers the link at which somebody signs in to a server that wants OAuth: an admin for every run, or each member for theirs where `authorization.per` is `member`. */
    HttpApiEndpoint.post("signIn", "/mcp-servers/:mcpServerId/sign-in", {
      params: server,
      success: SignInLink,
      error: [NotFound, Forbidden, Conflict, InvalidInput]
    }),
    /** Forgets the tokens here, and at the authorization server where that can be asked for. */
    HttpApiEndpoint.delete("signOut", "/mcp-servers/:mcpServerId/sign-in", {
      params: server,
      success: HttpApiSchema.NoContent,
      error: [NotFound, Forbidden]
    }),
    HttpApiEndpoint.delete("remove", "/mcp-servers/:mcpServerId", {
      params: server,
      success: HttpApiSchema.NoContent,
      error: [NotFound, Forbidden]
    })
  )
  .prefix("/api/projects/:projectId")
  .middleware(RequestJudgement)
  .middleware(Authorization) {}
