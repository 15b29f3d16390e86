/**
 * The addresses of reactions: all agents that react, and one of them.
 */
import { createRoute } from "@tanstack/react-router"
import { lazyPage } from "../frame/lazy-page.tsx"
import { rootRoute } from "../frame/root-route.tsx"

const reactionsRoute = createRoute({
  getParentRoute: () => rootRoute,
  path: "/reactions",
  staticData: { title: "Reactions" },
  component: lazyPage(() => import("./reactions-page.tsx"), "ReactionsPage")
})

const agentReactionsRoute = createRoute({
  getParentRoute: () => rootRoute,
  path: "/reactions/$agentId",
  staticData: { title: "Reactions" },
  component: lazyPage(() => import("./agent-reactions-page.tsx"), "AgentReactionsPage")
})

export const reactionRoutes = [reactionsRoute, agentReactionsRoute] as const
