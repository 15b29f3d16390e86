/**
 * Reads of agents: the definitions, how they fare, and what they did with what woke them.
 */
import type { Page } from "@tropism/api/page"
import type { AgentHealth, ScheduleFires } from "@tropism/api/agents-api"
import type { Agent } from "@tropism/domain/agent"
import type { AgentVersionDiff, AgentVersionSummary } from "@tropism/domain/agent-version"
import type { Autonomy } from "@tropism/domain/autonomy"
import type { AgentDay, AgentModelUse } from "@tropism/domain/budget"
import type { Webhook } from "@tropism/domain/webhook"
import type { Backtest, ReportedBacktest } from "@tropism/domain/backtest"
import { limits } from "../limits.ts"
import { reading } from "./reading.ts"

export const agentPath = (agentId: string, rest = ""): string =>
  `agents/${encodeURIComponent(agentId)}${rest}`

export const agentsQuery = (projectId: string) =>
  reading<Page<Agent>>({
    projectId,
    key: ["agents"],
    path: "agents",
    parameters: { limit: limits.rowsPerPage },
    refreshMs: limits.refreshIntervalMs
  })

/** How one agent fares. */
export const agentHealthQuery = (projectId: string, agentId: string) =>
  reading<Page<AgentHealth>>({
    projectId,
    key: ["agents", "health-of", agentId],
    path: "agents/health",
    parameters: { agentId }
  })

/** The names of the project's agents, by their ids; of the newest as many as one page has. */
export const agentNamesQuery = (projectId: string) => ({
  ...agentsQuery(projectId),
  select: ({ items }: Page<Agent>): ReadonlyMap<string, string> =>
    new Map(items.map(({ id, name }) => [id, name]))
})

export const agentQuery = (projectId: string, agentId: string) =>
  reading<Agent>({
    projectId,
    key: ["agent", agentId],
    path: agentPath(agentId),
    refreshMs: limits.refreshIntervalMs
  })

export const agentVersionsQuery = (projectId: string, agentId: string) =>
  reading<Page<AgentVersionSummary>>({
    projectId,
    key: ["agent-versions", agentId],
    path: agentPath(agentId, "/versions"),
    parameters: { limit: limits.rowsPerPage }
  })

/** What a version changed, against the one before it or another. */
export const agentDiffQuery = (
  projectId: string,
  agentId: string,
  version: number,
  from: number | undefined
) =>
  reading<AgentVersionDiff>({
    projectId,
    key: ["agent-versions", agentId, "diff"],
    path: agentPath(agentId, `/versions/${version}/diff`),
    parameters: { from },
    isLasting: true
  })

export const webhooksQuery = (projectId: string, agentId: string) =>
  reading<Page<Webhook>>({
    projectId,
    key: ["webhooks", agentId],
    path: agentPath(agentId, "/webhooks"),
    parameters: { limit: limits.rowsPerPage },
    refreshMs: limits.refreshIntervalMs
  })

/** What the agent used, day by day (UTC), today first. */
export const agentUsageQuery = (projectId: string, agentId: string, days: number) =>
  reading<{ readonly items: ReadonlyArray<AgentDay> }>({
    projectId,
    key: ["agents", "usage", agentId],
    path: agentPath(agentId, "/usage"),
    parameters: { days },
    refreshMs: limits.refreshIntervalMs
  })

/** What the agent used of each model in the same days, the most tokens first. */
export const agentModelUsageQuery = (projectId: string, agentId: string, days: number) =>
  reading<{ readonly items: ReadonlyArray<AgentModelUse> }>({
    projectId,
    key: ["agents", "usage", agentId, "models"],
    path: agentPath(agentId, "/usage/models"),
    parameters: { days },
    refreshMs: limits.refreshIntervalMs
  })

/** What a version of an agent has earned; its present one where none is named. */
export const autonomyQuery = (projectId: string, agentId: string, version?: number) =>
  reading<Autonomy>({
    projectId,
    key: ["autonomy", agentId],
    path: agentPath(agentId, "/autonomy"),
    parameters: { version }
  })

export const backtestsQuery = (projectId: string, agentId: string) =>
  reading<Page<Backtest>>({
    projectId,
    key: ["backtests", agentId],
    path: agentPath(agentId, "/backtests"),
    refreshMs: limits.refreshIntervalMs
  })

export const backtestQuery = (projectId: string, agentId: string, backtestId: string) =>
  reading<ReportedBacktest>({
    projectId,
    key: ["backtest", backtestId],
    path: agentPath(agentId, `/backtests/${encodeURIComponent(backtestId)}`),
    refreshMs: limits.refreshIntervalMs
  })

/** When a schedule would fire next, whoever had it. */
export const firesQuery = (projectId: string, cronSchedule: string, timezone: string) =>
  reading<typeof ScheduleFires.Type>({
    projectId,
    key: ["fires"],
    path: "agents/fires",
    parameters: { cronSchedule, timezone: timezone === "" ? undefined : timezone }
  })
