/**
 * Reads of agents: the definitions, how they fare, and what they did with what woke them.
 */
import type { Page } from "@tropism/api/page"
import type { Agent } from "@tropism/domain/agent"
import type { AgentVersionSummary } from "@tropism/domain/agent-version"
import { limits } from "../limits.ts"
import { reading } from "./reading.ts"

const agentPath = (agentId: string, rest = ""): string => `agents/${encodeURIComponent(agentId)}${rest}`

export const agentsQuery = (projectId: string) =>
  reading<Page<Agent>>({
    projectId,
    key: ["agents"],
    path: "agents",
    parameters: { limit: limits.rowsPerPage },
    refreshMs: limits.refreshIntervalMs
  })

/** The names of the project's agents, by their ids; of the newest as many as one page has. */
export const agentNamesQuery = (projectId: string) => ({
  ...agentsQuery(projectId),
  select: ({ items }: Page<Agent>): ReadonlyMap<string, string> =>
    new Map(items.map(({ id, name }) => [id, name]))
})

export const agentQuery = (projectId: string, agentId: string) =>
  reading<Agent>({ projectId, key: ["agent", agentId], path: agentPath(agentId) })

export const agentVersionsQuery = (projectId: string, agentId: string) =>
  reading<Page<AgentVersionSummary>>({
    projectId,
    key: ["agent-versions", agentId],
    path: agentPath(agentId, "/versions"),
    parameters: { limit: limits.rowsPerPage }
  })
