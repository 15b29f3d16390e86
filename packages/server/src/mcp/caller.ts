/**
 * Who calls, and where: from the token and the address alone.
 *
 * Flow: **mcp** → graph → outbox → dispatch → run → tool → task
 *
 * A project's own address serves it to every token that reaches it. At the root
 * a token of exactly one project is at home; one that spans several may connect
 * and look, and is told the address to use with each call. A project that is
 * foreign and one that does not exist are the same to whoever asks.
 */
import { type Principal, roleIn } from "@tropism/api/authorization"
import { Unauthorized } from "@tropism/api/problems"
import { ProjectId } from "@tropism/domain/ids"
import { Effect, Option, Redacted, Schema } from "effect"
import { Database } from "../database/database.ts"
import { Projects } from "../database/projects.ts"
import { noProject, principalIn } from "../http/access.ts"
import { Tokens } from "../http/tokens.ts"

/** Where a request may act: in one project, or nowhere yet, because its token spans several. */
export type Place =
  | { readonly principal: Principal; readonly projectId: ProjectId }
  | { readonly principal: Principal; readonly projectId: null }

/** The principal of a token, in the project of the address; null is the root. */
export const findPlace = Effect.fn("mcp.findPlace")(function* (
  secret: Redacted.Redacted,
  wanted: string | null
) {
  const principal = Redacted.value(secret) === "" ? undefined : yield* (yield* Tokens).find(secret)
  if (!principal)
    return yield* new Unauthorized({
      detail: "Send a valid token with every request: Authorization: Bearer …"
    })
  if (wanted === null) {
    const [only, ...others] = principal.projectIds ?? []
    if (only === undefined || others.length > 0) return { principal, projectId: null } satisfies Place
    return { principal: yield* principalIn(principal, only), projectId: only } satisfies Place
  }
  const projectId = Option.getOrUndefined(Schema.decodeUnknownOption(ProjectId)(wanted))
  if (projectId === undefined) return yield* noProject()
  const { role, userId } = yield* principalIn(principal, projectId)
  const database = yield* Database
  const projects = yield* Projects
  if (!(yield* database.inProject(projectId, projects.find))) return yield* noProject()
  const projectIds = principal.projectIds === null ? null : [projectId]
  return { principal: { userId, role, projectIds, roles: null }, projectId } satisfies Place
})

/** Who a token is in a project by now; undefined when it opens it no more. */
export const whoIs = Effect.fnUntraced(function* (
  tokens: Tokens["Service"],
  { projectId, tokenHash }: { readonly projectId: ProjectId; readonly tokenHash: string }
) {
  const principal = yield* tokens.findByHash(tokenHash)
  const role = principal && roleIn(principal, projectId)
  return principal && role && { ...principal, role }
})
