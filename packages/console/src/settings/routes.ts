/**
 * The address of the settings; `?tab=` opens a section.
 */
import { createRoute } from "@tanstack/react-router"
import { lazyPage } from "../frame/lazy-page.tsx"
import { rootRoute } from "../frame/root-route.tsx"

const settingsRoute = createRoute({
  getParentRoute: () => rootRoute,
  path: "/settings",
  staticData: { title: "Settings" },
  component: lazyPage(() => import("./settings-page.tsx"), "SettingsPage")
})

export const settingsRoutes = [settingsRoute] as const
