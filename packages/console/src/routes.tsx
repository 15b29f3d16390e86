/**
 * The addresses of the console: the inbox, and one suggestion in it.
 */
import {
  createRootRoute,
  createRoute,
  createRouter,
  type ErrorComponentProps,
  Link,
  useParams
} from "@tanstack/react-router"
import type { ReactNode } from "react"
import { Centred, ConsoleFrame } from "./frame/console-frame.tsx"
import { InboxPage } from "./inbox/inbox-page.tsx"

interface Search {
  /** The project of the page, when there are several. */
  readonly project?: string
}

const NotFound = (): ReactNode => (
  <Centred title="There is no such page">
    <Link to="/" className="font-medium text-leaf underline-offset-2 hover:underline">
      To the inbox
    </Link>
  </Centred>
)

const Broken = ({ error }: ErrorComponentProps): ReactNode => (
  <Centred title="The console has failed">
    This is a fault of the console, not of your data: {String(error)}. Reload the page to go on.
  </Centred>
)

const rootRoute = createRootRoute({
  component: ConsoleFrame,
  notFoundComponent: NotFound,
  errorComponent: Broken,
  validateSearch: (search: Record<string, unknown>): Search =>
    typeof search["project"] === "string" && search["project"] !== "" ? { project: search["project"] } : {}
})

/** One component for both addresses, so that following a link keeps the reviewer's place and selection. */
const inboxRoute = createRoute({
  getParentRoute: () => rootRoute,
  id: "inbox",
  component: () => {
    const { taskId } = useParams({ strict: false })
    return <InboxPage {...(taskId !== undefined && { linkedTaskId: taskId })} />
  }
})

const listRoute = createRoute({ getParentRoute: () => inboxRoute, path: "/" })

const taskRoute = createRoute({ getParentRoute: () => inboxRoute, path: "/tasks/$taskId" })

export const router = createRouter({
  routeTree: rootRoute.addChildren([inboxRoute.addChildren([listRoute, taskRoute])]),
  scrollRestoration: false
})

declare module "@tanstack/react-router" {
  interface Register {
    router: typeof router
  }
}
