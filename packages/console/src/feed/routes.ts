/**
 * The addresses of what happens: live, and one event.
 */
import { createRoute, lazyRouteComponent } from "@tanstack/react-router"
import { rootRoute } from "../frame/root-route.tsx"

const liveRoute = createRoute({
  getParentRoute: () => rootRoute,
  path: "/live",
  staticData: { title: "Live" },
  component: lazyRouteComponent(() => import("./live-page.tsx"), "LivePage")
})

const eventRoute = createRoute({
  getParentRoute: () => rootRoute,
  path: "/events/$eventId",
  staticData: { title: "Event" },
  component: lazyRouteComponent(() => import("./event-page.tsx"), "EventPage")
})

export const feedRoutes = [liveRoute, eventRoute] as const
