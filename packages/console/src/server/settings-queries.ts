/**
 * Reads of what people set: members, tokens, sessions, foreign servers, models and the project itself.
 */
import type { KillSwitch } from "@tropism/api/kill-switch-api"
import type { Member, Token } from "@tropism/api/members-api"
import type { ModelsState } from "@tropism/api/models-api"
import type { Page } from "@tropism/api/page"
import type { Session } from "@tropism/api/sessions-api"
import type { McpServer } from "@tropism/domain/mcp-server"
import type { ProjectSettings } from "@tropism/domain/project-settings"
import { queryOptions } from "@tanstack/react-query"
import { Effect } from "effect"
import { limits } from "../limits.ts"
import { reading } from "./reading.ts"
import { call } from "./request.ts"

const wholePage = { limit: limits.rowsPerPage }

/** What people set is no event of the graph, and others set it too. */
const refreshMs = limits.refreshIntervalMs

export const membersQuery = (projectId: string) =>
  reading<Page<Member>>({ projectId, key: ["members"], path: "members", parameters: wholePage, refreshMs })

export const tokensQuery = (projectId: string) =>
  reading<Page<Token>>({ projectId, key: ["tokens"], path: "tokens", parameters: wholePage, refreshMs })

export const mcpServersQuery = (projectId: string) =>
  reading<Page<McpServer>>({
    projectId,
    key: ["mcp-servers"],
    path: "mcp-servers",
    parameters: wholePage,
    refreshMs
  })

export const modelsQuery = (projectId: string) =>
  reading<ModelsState>({ projectId, key: ["models"], path: "models" })

export const projectSettingsQuery = (projectId: string) =>
  reading<ProjectSettings>({ projectId, key: ["settings"], path: "settings", refreshMs })

/** What stops the agents. */
export const killSwitchQuery = (projectId: string) =>
  reading<typeof KillSwitch.Type>({
    projectId,
    key: ["kill-switch"],
    path: "kill-switch",
    refreshMs
  })

/** The person's own sessions, in whatever project. */
export const sessionsQuery = queryOptions({
  queryKey: ["me", "sessions"],
  queryFn: ({ signal }) => Effect.runPromise(call<Page<Session>>("/api/me/sessions"), { signal }),
  refetchInterval: refreshMs
})
