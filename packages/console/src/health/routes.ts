/**
 * The address of the health page; `/health` is one of the API.
 */
import { createRoute, lazyRouteComponent } from "@tanstack/react-router"
import { rootRoute } from "../frame/root-route.tsx"

const healthRoute = createRoute({
  getParentRoute: () => rootRoute,
  path: "/status",
  staticData: { title: "Health" },
  component: lazyRouteComponent(() => import("./health-page.tsx"), "HealthPage")
})

export const healthRoutes = [healthRoute] as const
