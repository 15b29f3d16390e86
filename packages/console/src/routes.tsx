/**
 * All addresses of the console; each screen declares its own beside its pages.
 *
 * What stands behind the question mark is text: an id of digits stays one.
 */
import { createRouter } from "@tanstack/react-router"
import { agentRoutes } from "./agents/routes.ts"
import { chainRoutes } from "./chains/routes.ts"
import { chatRoutes } from "./chat/routes.ts"
import { feedRoutes } from "./feed/routes.ts"
import { PageFailed } from "./frame/page-fault.tsx"
import { rootRoute } from "./frame/root-route.tsx"
import { graphRoutes } from "./graph/routes.ts"
import { healthRoutes } from "./health/routes.ts"
import { inboxRoutes } from "./inbox/routes.tsx"
import { Skeleton } from "./parts/skeleton.tsx"
import { reactionRoutes } from "./reactions/routes.ts"
import { runRoutes } from "./runs/routes.ts"
import { settingsRoutes } from "./settings/routes.ts"

export const router = createRouter({
  routeTree: rootRoute.addChildren([
    ...inboxRoutes,
    ...runRoutes,
    ...graphRoutes,
    ...agentRoutes,
    ...reactionRoutes,
    ...chainRoutes,
    ...feedRoutes,
    ...chatRoutes,
    ...healthRoutes,
    ...settingsRoutes
  ]),
  parseSearch: (text) => Object.fromEntries(new URLSearchParams(text)),
  stringifySearch: (search) => {
    const entries = Object.entries(search).flatMap(([name, value]) =>
      typeof value === "string" ? [[name, value]] : []
    )
    return entries.length === 0 ? "" : `?${new URLSearchParams(entries)}`
  },
  defaultErrorComponent: PageFailed,
  defaultPendingComponent: Skeleton,
  defaultPreload: "intent",
  scrollRestoration: true
})

declare module "@tanstack/react-router" {
  interface Register {
    router: typeof router
  }
  interface StaticDataRouteOption {
    /** The page's name in the tab of the browser. */
    readonly title?: string
  }
}
