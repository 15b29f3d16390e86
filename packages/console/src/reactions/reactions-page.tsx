/**
 * What agents react to and how they keep up, a line for each agent that reacts; and what was denied.
 */
import type { ReactionQueue } from "@tropism/api/processing-api"
import type { ReactNode } from "react"
import { useConsole } from "../frame/console-context.tsx"
import type { Column } from "../parts/data-table.tsx"
import { EmptyState } from "../parts/empty-state.tsx"
import { PageHeader } from "../parts/page-header.tsx"
import { PagedTable } from "../parts/paged-table.tsx"
import { type Tab, Tabs } from "../parts/tabs.tsx"
import { TimeAgo } from "../parts/time-ago.tsx"
import { Visible } from "../parts/visible.tsx"
import { usePagedList } from "../server/paged.ts"
import { DeniedTab } from "./denied-tab.tsx"
import { countedText, entryStatusWord, listensToText, queueText } from "./reaction-words.ts"

export const ReactionsPage = (): ReactNode => (
  <>
    <PageHeader title="Reactions" lead="Event queues, dead letters and denied actions for each agent." />
    <Tabs label="Reactions" tabs={tabs} />
  </>
)

const tabs: ReadonlyArray<Tab> = [
  { id: "queues", title: "Queues", content: () => <Queues /> },
  { id: "denied", title: "Denied", content: () => <DeniedTab /> }
]

const Queues = (): ReactNode => {
  const { project } = useConsole()
  const list = usePagedList<ReactionQueue>({ projectId: project.id, key: ["reactions"], path: "reactions" })
  return (
    <PagedTable
      label="Reacting agents"
      list={list}
      reading="Loading queues …"
      columns={columns}
      linkTo={({ id }) => ({ to: "/reactions/$agentId", params: { agentId: id } })}
      empty={
        <EmptyState
          title="No reacting agents yet"
          command="npx tropism agents apply -f agents.yaml"
          does="creates agents from a file"
        >
          Agents that are triggered by graph changes appear here with their queues.
        </EmptyState>
      }
    />
  )
}

const columns: ReadonlyArray<Column<ReactionQueue>> = [
  {
    title: "Agent",
    width: "minmax(0,1fr)",
    cell: ({ agentName }) => <Visible text={agentName} />
  },
  {
    title: "Status",
    width: "minmax(0,2fr)",
    cell: (queue) => (
      <span
        data-dead-letters={queue.deadLetters}
        className={queue.deadLetters > 0 || !queue.enabled ? "text-caution-ink" : "text-ink-soft"}
      >
        <Visible text={queueText(queue)} />
      </span>
    )
  },
  {
    title: "Listens to",
    width: "minmax(0,1fr)",
    cell: (queue) => (
      <span className="text-xs [overflow-wrap:anywhere] text-ink-soft">
        <Visible text={listensToText(queue)} />
      </span>
    )
  },
  {
    title: "Queue",
    width: "10rem",
    cell: ({ waiting, waitingSince, working }) => (
      <span className="text-xs text-ink-soft">
        {countedText(waiting)} waiting, {countedText(working)} running
        {waitingSince !== null && (
          <>
            <br />
            oldest from <TimeAgo instant={waitingSince} />
          </>
        )}
      </span>
    )
  },
  {
    title: "Latest",
    width: "8rem",
    cell: ({ newest }) => (
      <span className="text-xs text-ink-soft">
        {newest === null ? (
          "none yet"
        ) : (
          <>
            {entryStatusWord(newest.status)}, <TimeAgo instant={newest.createdAt} />
          </>
        )}
      </span>
    )
  }
]
