/**
 * What the settings send to the server.
 */
import type { Role } from "@tropism/api/authorization"
import type { Member, NewToken, TokenInput } from "@tropism/api/members-api"
import type { Project } from "@tropism/api/system-api"
import type { KillSwitchInput } from "@tropism/api/kill-switch-api"
import type { McpServer, McpServerInput, McpServerPatch } from "@tropism/domain/mcp-server"
import type { ProjectSettings } from "@tropism/domain/project-settings"
import { Effect } from "effect"
import { limits } from "../limits.ts"
import { isOvertaken, Problem } from "../server/problem.ts"
import { call, inProject } from "../server/request.ts"
import { movedFields, patchOf, type Written } from "./written-server.ts"

const memberPath = (projectId: string, userId: string, rest = ""): string =>
  inProject(projectId, `members/${encodeURIComponent(userId)}${rest}`)

export const addMember = (projectId: string, body: { userId: string; role: Role }, idempotencyKey: string) =>
  call<Member>(inProject(projectId, "members"), { method: "POST", body, idempotencyKey })

export const changeRole = (projectId: string, userId: string, role: Role) =>
  call<Member>(memberPath(projectId, userId), { method: "PATCH", body: { role } })

export const removeMember = (projectId: string, userId: string) =>
  call<null>(memberPath(projectId, userId), { method: "DELETE" })

export interface LoginLink {
  readonly url: string
  readonly expiresAt: string
}

export const makeLoginLink = (projectId: string, userId: string, idempotencyKey: string) =>
  call<LoginLink>(memberPath(projectId, userId, "/login-link"), { method: "POST", idempotencyKey })

/** As the contract sends it: the instant is a text. */
export type TokenWish = Omit<typeof TokenInput.Encoded, "expiresAt"> & { readonly expiresAt: string | null }

export const makeToken = (projectId: string, body: TokenWish, idempotencyKey: string) =>
  call<typeof NewToken.Type>(inProject(projectId, "tokens"), { method: "POST", body, idempotencyKey })

export const revokeToken = (projectId: string, tokenId: string) =>
  call<null>(inProject(projectId, `tokens/${encodeURIComponent(tokenId)}`), { method: "DELETE" })

export const endSession = (sessionId: string) =>
  call<null>(`/api/me/sessions/${encodeURIComponent(sessionId)}`, { method: "DELETE" })

export const endOtherSessions = () =>
  call<{ readonly ended: number }>("/api/me/sessions", { method: "DELETE" })

const serverPath = (projectId: string, serverId: string, rest = ""): string =>
  inProject(projectId, `mcp-servers/${encodeURIComponent(serverId)}${rest}`)

export const addServer = (projectId: string, body: McpServerInput, idempotencyKey: string) =>
  call<McpServer>(inProject(projectId, "mcp-servers"), { method: "POST", body, idempotencyKey })

export const changeServer = (projectId: string, serverId: string, body: McpServerPatch) =>
  call<McpServer>(serverPath(projectId, serverId), { method: "PATCH", body })

/** Changes the server as it is by now; where somebody is quicker, as it is by then. */
const changeAsItIs = (
  projectId: string,
  serverId: string,
  patchOn: (now: McpServer) => Effect.Effect<McpServerPatch, Problem>
) =>
  Effect.gen(function* () {
    const now = yield* readServer(projectId, serverId)
    const body = yield* patchOn(now)
    if (Object.keys(body).length === 0) return now
    const path = serverPath(projectId, serverId)
    return yield* call<McpServer>(path, { method: "PATCH", ifMatch: now.version, body })
  }).pipe(Effect.retry({ times: limits.overtakenRetries, while: isOvertaken }))

/** The server as it is by now: what a page shows of it may be older. */
const readServer = (projectId: string, serverId: string) => call<McpServer>(serverPath(projectId, serverId))

/** Saves what was written on top of the server as it is by now; refused where somebody else has changed the same. */
export const saveServer = (projectId: string, serverId: string, written: Written) =>
  changeAsItIs(projectId, serverId, (now) =>
    movedFields(written, now).length > 0
      ? Effect.fail(
          new Problem({
            status: 409,
            document: { detail: "Someone else changed this. See the current value." }
          })
        )
      : Effect.succeed(patchOf(written, now))
  )

/** Allows one tool or forbids it, and leaves the others as they are by now. */
export const allowTool = (projectId: string, serverId: string, tool: string, isAllowed: boolean) =>
  changeAsItIs(projectId, serverId, ({ allowedTools }) => {
    const others = allowedTools.filter((name) => name !== tool)
    return Effect.succeed({ allowedTools: isAllowed ? [...others, tool] : others })
  })

export const testServer = (projectId: string, serverId: string, idempotencyKey: string) =>
  call<McpServer>(serverPath(projectId, serverId, "/refresh"), { method: "POST", idempotencyKey })

export const removeServer = (projectId: string, serverId: string) =>
  call<null>(serverPath(projectId, serverId), { method: "DELETE" })

/** Where a person agrees that agents use a server under their account. */
export const signInTo = (projectId: string, serverId: string, idempotencyKey: string) =>
  call<LoginLink>(serverPath(projectId, serverId, "/sign-in"), { method: "POST", idempotencyKey })

export const signOutOf = (projectId: string, serverId: string) =>
  call<null>(serverPath(projectId, serverId, "/sign-in"), { method: "DELETE" })

export const makeProject = (name: string, idempotencyKey: string) =>
  call<Project>("/api/projects", { method: "POST", body: { name }, idempotencyKey })

export const renameProject = (projectId: string, name: string) =>
  call<Project>(`/api/projects/${encodeURIComponent(projectId)}`, { method: "PATCH", body: { name } })

export const turnKillSwitch = (projectId: string, body: KillSwitchInput) =>
  call<unknown>(inProject(projectId, "kill-switch"), { method: "PUT", body })

export const changeSettings = (projectId: string, body: Readonly<Record<string, unknown>>) =>
  call<ProjectSettings>(inProject(projectId, "settings"), { method: "PATCH", body })
