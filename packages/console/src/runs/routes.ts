/**
 * The addresses of runs: the list, and one run; `?tab=log&event=` opens one event of its log.
 */
import { createRoute } from "@tanstack/react-router"
import { lazyPage } from "../frame/lazy-page.tsx"
import { rootRoute } from "../frame/root-route.tsx"

const runsRoute = createRoute({
  getParentRoute: () => rootRoute,
  path: "/runs",
  staticData: { title: "Runs" },
  component: lazyPage(() => import("./runs-page.tsx"), "RunsPage")
})

const runRoute = createRoute({
  getParentRoute: () => rootRoute,
  path: "/runs/$runId",
  staticData: { title: "Run" },
  component: lazyPage(() => import("./run-page.tsx"), "RunPage")
})

export const runRoutes = [runsRoute, runRoute] as const
