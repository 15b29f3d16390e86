/**
 * The addresses of agents: the list, a new one, and one of them.
 */
import { createRoute, lazyRouteComponent } from "@tanstack/react-router"
import { rootRoute } from "../frame/root-route.tsx"

const agentsRoute = createRoute({
  getParentRoute: () => rootRoute,
  path: "/agents",
  staticData: { title: "Agents" },
  component: lazyRouteComponent(() => import("./agents-page.tsx"), "AgentsPage")
})

const newAgentRoute = createRoute({
  getParentRoute: () => rootRoute,
  path: "/agents/new",
  staticData: { title: "New agent" },
  component: lazyRouteComponent(() => import("./new-agent-page.tsx"), "NewAgentPage")
})

const agentRoute = createRoute({
  getParentRoute: () => rootRoute,
  path: "/agents/$agentId",
  staticData: { title: "Agent" },
  component: lazyRouteComponent(() => import("./agent-page.tsx"), "AgentPage")
})

export const agentRoutes = [agentsRoute, newAgentRoute, agentRoute] as const
