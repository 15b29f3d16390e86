/**
 * The address of the health page; `/health` is one of the API.
 */
import { createRoute } from "@tanstack/react-router"
import { lazyPage } from "../frame/lazy-page.tsx"
import { rootRoute } from "../frame/root-route.tsx"

const healthRoute = createRoute({
  getParentRoute: () => rootRoute,
  path: "/status",
  staticData: { title: "Health" },
  component: lazyPage(() => import("./health-page.tsx"), "HealthPage")
})

export const healthRoutes = [healthRoute] as const
