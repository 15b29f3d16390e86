/**
 * The addresses of reactions: all agents that react, and one of them.
 */
import { createRoute, lazyRouteComponent } from "@tanstack/react-router"
import { rootRoute } from "../frame/root-route.tsx"

const reactionsRoute = createRoute({
  getParentRoute: () => rootRoute,
  path: "/reactions",
  staticData: { title: "Reactions" },
  component: lazyRouteComponent(() => import("./reactions-page.tsx"), "ReactionsPage")
})

const agentReactionsRoute = createRoute({
  getParentRoute: () => rootRoute,
  path: "/reactions/$agentId",
  staticData: { title: "Reactions" },
  component: lazyRouteComponent(() => import("./agent-reactions-page.tsx"), "AgentReactionsPage")
})

export const reactionRoutes = [reactionsRoute, agentReactionsRoute] as const
