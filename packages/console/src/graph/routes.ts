/**
 * The addresses of the graph: the search with its picture, and one object.
 */
import { createRoute } from "@tanstack/react-router"
import { lazyPage } from "../frame/lazy-page.tsx"
import { rootRoute } from "../frame/root-route.tsx"

const graphRoute = createRoute({
  getParentRoute: () => rootRoute,
  path: "/graph",
  staticData: { title: "Graph" },
  component: lazyPage(() => import("./graph-page.tsx"), "GraphPage")
})

const objectRoute = createRoute({
  getParentRoute: () => rootRoute,
  path: "/objects/$objectId",
  staticData: { title: "Object" },
  component: lazyPage(() => import("./object-page.tsx"), "ObjectPage")
})

export const graphRoutes = [graphRoute, objectRoute] as const
