/**
 * What was denied: who tried what, and which right was missing. It is kept whether or not anybody looked at the run.
 */
import type { Denial } from "@tropism/domain/denial"
import type { LinkProps } from "@tanstack/react-router"
import type { ReactNode } from "react"
import { useConsole } from "../frame/console-context.tsx"
import type { Column } from "../parts/data-table.tsx"
import { EmptyState } from "../parts/empty-state.tsx"
import { PagedTable } from "../parts/paged-table.tsx"
import { TimeAgo } from "../parts/time-ago.tsx"
import { Visible } from "../parts/visible.tsx"
import { usePagedList } from "../server/paged.ts"
import { cutText } from "../words/cut-text.ts"
import { deniedText, missingRight } from "./denial-words.ts"

export const DeniedTab = (): ReactNode => {
  const { project } = useConsole()
  const list = usePagedList<Denial>({ projectId: project.id, key: ["denials"], path: "denials" })
  return (
    <PagedTable
      label="Denied actions"
      list={list}
      reading="Loading denied actions …"
      columns={columns}
      linkTo={placeOf}
      empty={
        <EmptyState title="No denied actions">
          Actions by agents and reviewers that were not permitted appear here with the reason.
        </EmptyState>
      }
    />
  )
}

/** Where it was tried; what a person's own program tries has no other place than their tokens. */
const placeOf = ({ runId, taskId }: Denial): LinkProps =>
  taskId !== null
    ? { to: "/tasks/$taskId", params: { taskId } }
    : runId !== null
      ? { to: "/runs/$runId", params: { runId } }
      : { to: "/settings", search: { tab: "tokens" } }

const columns: ReadonlyArray<Column<Denial>> = [
  {
    title: "Actor",
    width: "minmax(0,1fr)",
    cell: ({ agentName, door, userId }) => (
      <Visible text={(door === "approval" ? userId : agentName) ?? userId ?? "nobody"} />
    )
  },
  {
    title: "Action",
    width: "minmax(0,1fr)",
    cell: (denial) => (
      <span className="text-xs [overflow-wrap:anywhere] text-ink-soft">
        <Visible text={deniedText(denial)} />
      </span>
    )
  },
  {
    title: "Reason",
    width: "minmax(0,2fr)",
    cell: ({ detail, reason }) => (
      <span data-reason={reason} className="block min-w-0 text-xs [overflow-wrap:anywhere]">
        <span className="font-medium">{missingRight(reason)}</span>
        <span className="mt-0.5 block text-ink-soft">
          <Visible text={cutText(detail, 3, 300)} />
        </span>
      </span>
    )
  },
  { title: "When", width: "7rem", cell: ({ at }) => <TimeAgo instant={at} /> }
]
