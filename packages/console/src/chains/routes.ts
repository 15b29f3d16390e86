/**
 * The addresses of chains: the latest, and one by its root event.
 */
import { createRoute } from "@tanstack/react-router"
import { lazyPage } from "../frame/lazy-page.tsx"
import { rootRoute } from "../frame/root-route.tsx"

const chainsRoute = createRoute({
  getParentRoute: () => rootRoute,
  path: "/chains",
  staticData: { title: "Chains" },
  component: lazyPage(() => import("./chains-page.tsx"), "ChainsPage")
})

const chainRoute = createRoute({
  getParentRoute: () => rootRoute,
  path: "/chains/$rootEventId",
  staticData: { title: "Chain" },
  component: lazyPage(() => import("./chain-page.tsx"), "ChainPage")
})

export const chainRoutes = [chainsRoute, chainRoute] as const
