/**
 * The addresses of agents: the list, a new one, and one of them.
 */
import { createRoute } from "@tanstack/react-router"
import { lazyPage } from "../frame/lazy-page.tsx"
import { rootRoute } from "../frame/root-route.tsx"

const agentsRoute = createRoute({
  getParentRoute: () => rootRoute,
  path: "/agents",
  staticData: { title: "Agents" },
  component: lazyPage(() => import("./agents-page.tsx"), "AgentsPage")
})

const newAgentRoute = createRoute({
  getParentRoute: () => rootRoute,
  path: "/agents/new",
  staticData: { title: "New agent" },
  component: lazyPage(() => import("./new-agent-page.tsx"), "NewAgentPage")
})

const agentRoute = createRoute({
  getParentRoute: () => rootRoute,
  path: "/agents/$agentId",
  staticData: { title: "Agent" },
  component: lazyPage(() => import("./agent-page.tsx"), "AgentPage")
})

export const agentRoutes = [agentsRoute, newAgentRoute, agentRoute] as const
