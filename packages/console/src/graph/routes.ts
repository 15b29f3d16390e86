/**
 * The addresses of the graph: the search with its picture, and one object.
 */
import { createRoute, lazyRouteComponent } from "@tanstack/react-router"
import { rootRoute } from "../frame/root-route.tsx"

const graphRoute = createRoute({
  getParentRoute: () => rootRoute,
  path: "/graph",
  staticData: { title: "Graph" },
  component: lazyRouteComponent(() => import("./graph-page.tsx"), "GraphPage")
})

const objectRoute = createRoute({
  getParentRoute: () => rootRoute,
  path: "/objects/$objectId",
  staticData: { title: "Object" },
  component: lazyRouteComponent(() => import("./object-page.tsx"), "ObjectPage")
})

export const graphRoutes = [graphRoute, objectRoute] as const
