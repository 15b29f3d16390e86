/**
 * The address of the settings; `?tab=` opens a section.
 */
import { createRoute, lazyRouteComponent } from "@tanstack/react-router"
import { rootRoute } from "../frame/root-route.tsx"

const settingsRoute = createRoute({
  getParentRoute: () => rootRoute,
  path: "/settings",
  staticData: { title: "Settings" },
  component: lazyRouteComponent(() => import("./settings-page.tsx"), "SettingsPage")
})

export const settingsRoutes = [settingsRoute] as const
