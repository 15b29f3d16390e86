/**
 * The addresses of what happens: live, and one event.
 */
import { createRoute } from "@tanstack/react-router"
import { lazyPage } from "../frame/lazy-page.tsx"
import { rootRoute } from "../frame/root-route.tsx"

const liveRoute = createRoute({
  getParentRoute: () => rootRoute,
  path: "/live",
  staticData: { title: "Live" },
  component: lazyPage(() => import("./live-page.tsx"), "LivePage")
})

const eventRoute = createRoute({
  getParentRoute: () => rootRoute,
  path: "/events/$eventId",
  staticData: { title: "Event" },
  component: lazyPage(() => import("./event-page.tsx"), "EventPage")
})

export const feedRoutes = [liveRoute, eventRoute] as const
