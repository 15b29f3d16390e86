/**
 * The addresses of the inbox: the list, and one task in it. The first page is not loaded late.
 */
import { useQuery } from "@tanstack/react-query"
import { createRoute, useParams } from "@tanstack/react-router"
import type { ReactNode } from "react"
import { useConsole } from "../frame/console-context.tsx"
import { RecentRuns } from "../frame/recent-runs.tsx"
import { rootRoute } from "../frame/root-route.tsx"
import { numberedTaskQuery } from "../server/queries.ts"
import { InboxPage } from "./inbox-page.tsx"

const InboxWithRuns = (): ReactNode => {
  const { taskId } = useParams({ strict: false })
  const { project } = useConsole()
  const linkedTaskId = useTaskId(project.id, taskId)
  return (
    <div className="grid gap-x-10 gap-y-14 xl:grid-cols-[minmax(0,1fr)_17rem]">
      <div className="min-w-0">
        <InboxPage {...(linkedTaskId !== undefined && { linkedTaskId })} />
      </div>
      <aside
        aria-label="Recent runs"
        className="min-w-0 xl:sticky xl:top-23 xl:max-h-[calc(100dvh-7rem)] xl:self-start xl:overflow-y-auto"
      >
        <RecentRuns projectId={project.id} />
      </aside>
    </div>
  )
}

/** The id of the task that an address names by its id or, as everywhere else, by its number. */
const useTaskId = (projectId: string, name: string | undefined): string | undefined => {
  const isNumber = name !== undefined && /^t?[1-9]\d{0,8}$/.test(name)
  const { data } = useQuery({ ...numberedTaskQuery(projectId, name ?? ""), enabled: isNumber })
  return isNumber ? (data === null ? name : data?.id) : name
}

/** One component for both addresses, so that following a link keeps the reviewer's place and selection. */
const inboxRoute = createRoute({ getParentRoute: () => rootRoute, id: "inbox", component: InboxWithRuns })

const listRoute = createRoute({ getParentRoute: () => inboxRoute, path: "/" })
const taskRoute = createRoute({ getParentRoute: () => inboxRoute, path: "/tasks/$taskId" })

export const inboxRoutes = [inboxRoute.addChildren([listRoute, taskRoute])] as const
