/**
 * The addresses of runs: the list, and one run; `?tab=log&event=` opens one event of its log.
 */
import { createRoute, lazyRouteComponent } from "@tanstack/react-router"
import { rootRoute } from "../frame/root-route.tsx"

const runsRoute = createRoute({
  getParentRoute: () => rootRoute,
  path: "/runs",
  staticData: { title: "Runs" },
  component: lazyRouteComponent(() => import("./runs-page.tsx"), "RunsPage")
})

const runRoute = createRoute({
  getParentRoute: () => rootRoute,
  path: "/runs/$runId",
  staticData: { title: "Run" },
  component: lazyRouteComponent(() => import("./run-page.tsx"), "RunPage")
})

export const runRoutes = [runsRoute, runRoute] as const
