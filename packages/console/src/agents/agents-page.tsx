/**
 * The agents of the project and how each fares.
 */
import type { AgentHealth } from "@tropism/api/agents-api"
import { Link } from "@tanstack/react-router"
import type { ReactNode } from "react"
import { useConsole } from "../frame/console-context.tsx"
import type { Column } from "../parts/data-table.tsx"
import { EmptyState } from "../parts/empty-state.tsx"
import { PageHeader } from "../parts/page-header.tsx"
import { PagedTable } from "../parts/paged-table.tsx"
import { RunSign, runStatusWord } from "../parts/run-status.tsx"
import { TimeAgo } from "../parts/time-ago.tsx"
import { Visible } from "../parts/visible.tsx"
import { usePagedList } from "../server/paged.ts"
import { moneyText } from "../words/amounts.ts"
import { cutText } from "../words/cut-text.ts"
import { healthText, triggerWord } from "./agent-words.ts"

export const AgentsPage = (): ReactNode => {
  const { project, isAdmin } = useConsole()
  const list = usePagedList<AgentHealth>({
    projectId: project.id,
    key: ["agents", "health"],
    path: "agents/health"
  })
  return (
    <>
      <PageHeader title="Agents" lead="Who works here, what wakes them, and how they fare.">
        {isAdmin && (
          <Link
            to="/agents/new"
            className="inline-flex h-9 items-center rounded-lg bg-leaf px-3.5 text-sm font-medium text-on-leaf hover:bg-leaf-strong"
          >
            New agent
          </Link>
        )}
      </PageHeader>
      <PagedTable
        label="Agents"
        list={list}
        reading="Reading the agents …"
        columns={columns}
        linkTo={({ id }) => ({ to: "/agents/$agentId", params: { agentId: id } })}
        empty={
          <EmptyState
            title="There is no agent yet"
            command="npx tropism agents apply -f agents.yaml"
            does="makes agents of a file"
          >
            Each agent is listed here with its latest runs.
          </EmptyState>
        }
      />
    </>
  )
}

/** How an agent fares, and whether anybody can think for it. */
const Now = ({ health }: { readonly health: AgentHealth }): ReactNode => {
  const isWell = health.enabled && health.latest[0]?.status !== "failed"
  const { modelMissing } = health
  return (
    <span className={isWell ? "text-ink-soft" : "text-caution-ink"}>
      <Visible text={cutText(healthText(health), 2, 200)} />
      {modelMissing !== null && (
        <span className="block text-caution-ink">
          <Visible text={cutText(modelMissing, 2, 200)} />
        </span>
      )}
    </span>
  )
}

const columns: ReadonlyArray<Column<AgentHealth>> = [
  { title: "Agent", width: "minmax(0,1fr)", cell: ({ agentName }) => <Visible text={agentName} /> },
  {
    title: "Now",
    width: "minmax(0,1.6fr)",
    cell: (health) => <Now health={health} />
  },
  {
    title: "Latest runs",
    width: "9rem",
    cell: ({ latest }) => (
      <span
        role="img"
        aria-label={
          latest.length === 0
            ? "no runs"
            : `newest first: ${latest.map(({ status }) => runStatusWord(status)).join(", ")}`
        }
        className="flex gap-0.5 overflow-hidden"
      >
        {latest.slice(0, 6).map(({ id, status }) => (
          <RunSign key={id} status={status} />
        ))}
      </span>
    )
  },
  {
    title: "Woken by",
    width: "10rem",
    cell: ({ triggerType, nextFireAt }) => (
      <span className="text-xs text-ink-soft">
        {triggerWord(triggerType)}
        {nextFireAt !== null && (
          <>
            <br />
            next {new Date(nextFireAt).toLocaleString(undefined, { dateStyle: "medium", timeStyle: "short" })}
          </>
        )}
      </span>
    )
  },
  {
    title: "Latest, and cost of 7 days",
    width: "8rem",
    cell: ({ latest: [newest], weekCostUsd }) => (
      <span className="text-xs text-ink-soft">
        {newest === undefined ? "never ran" : <TimeAgo instant={newest.createdAt} />}
        <br />
        {moneyText(weekCostUsd)}
      </span>
    )
  }
]
