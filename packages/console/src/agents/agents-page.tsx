/**
 * The agents of the project and how each fares.
 */
import type { AgentHealth } from "@tropism/api/agents-api"
import { Link } from "@tanstack/react-router"
import { type ReactNode, useMemo } from "react"
import { useConsole } from "../frame/console-context.tsx"
import { limits } from "../limits.ts"
import type { Column } from "../parts/data-table.tsx"
import { EmptyState } from "../parts/empty-state.tsx"
import { type Filter, FilterBar } from "../parts/filter-bar.tsx"
import { PageHeader } from "../parts/page-header.tsx"
import { PagedTable } from "../parts/paged-table.tsx"
import { RunSign, runStatusWord } from "../parts/run-status.tsx"
import { ClockTime, TimeAgo } from "../parts/time-ago.tsx"
import { useAddress } from "../parts/use-address.ts"
import { Visible } from "../parts/visible.tsx"
import { usePagedList, useReadThrough } from "../server/paged.ts"
import { moneyText } from "../words/amounts.ts"
import { cutText } from "../words/cut-text.ts"
import { FirstAgent, isGiven } from "../parts/first-agent.tsx"
import { chosenAgents, healthState, healthText, triggerWord } from "./agent-words.ts"

export const AgentsPage = (): ReactNode => {
  const { project, isAdmin } = useConsole()
  const list = usePagedList<AgentHealth>({
    projectId: project.id,
    key: ["agents", "health"],
    path: "agents/health"
  })
  // The API lists the newest first, so all are read before they are sorted.
  useReadThrough(list, limits.agentsToSort)
  const [{ words, enabled }] = useAddress()
  const rows = useMemo(() => chosenAgents(list.rows, { words, enabled }), [list.rows, words, enabled])
  return (
    <>
      <PageHeader title="Agents" lead="Agents and their health. Agents that need attention are listed first.">
        {isAdmin && (
          <Link
            to="/agents/new"
            className="inline-flex h-9 items-center rounded-lg bg-leaf px-3.5 text-sm font-medium text-on-leaf hover:bg-leaf-strong"
          >
            New agent
          </Link>
        )}
      </PageHeader>
      <FilterBar label="Search agents" filters={filters} />
      {list.rows.length > 0 && list.rows.every(({ agentName }) => isGiven(agentName)) && (
        <div className="mb-6">
          <FirstAgent />
        </div>
      )}
      {list.hasMore && list.rows.length >= limits.agentsToSort && (
        <p className="mb-3 text-sm text-ink-soft">
          Showing the latest {list.rows.length.toLocaleString()} agents; scroll to load older ones.
        </p>
      )}
      <PagedTable
        label="Agents"
        list={{ ...list, rows }}
        reading="Loading agents …"
        columns={columns}
        linkTo={({ id }) => ({ to: "/agents/$agentId", params: { agentId: id } })}
        empty={
          list.rows.length > 0 ? (
            <EmptyState title="No matching agents">No agents match your search.</EmptyState>
          ) : (
            <EmptyState
              title="No agents yet"
              command="npx tropism agents apply -f agents.yaml"
              does="creates agents from a file"
            >
              Agents appear here with their latest runs.
            </EmptyState>
          )
        }
      />
    </>
  )
}

const filters: ReadonlyArray<Filter> = [
  { type: "text", name: "words", label: "Name" },
  {
    type: "choice",
    name: "enabled",
    label: "Enabled",
    choices: [
      { value: "true", label: "Enabled" },
      { value: "false", label: "Disabled" }
    ]
  }
]

/** How an agent fares, and whether anybody can think for it. */
const Now = ({ health }: { readonly health: AgentHealth }): ReactNode => {
  const isWell = health.enabled && health.latest[0]?.status !== "failed"
  const { modelMissing } = health
  return (
    <span data-state={healthState(health)} className={isWell ? "text-ink-soft" : "text-caution-ink"}>
      <Visible text={cutText(healthText(health), 2, 200)} />
      {modelMissing !== null && (
        <span data-testid="model-missing" className="block text-caution-ink">
          <Visible text={cutText(modelMissing, 2, 200)} />
        </span>
      )}
    </span>
  )
}

const columns: ReadonlyArray<Column<AgentHealth>> = [
  { title: "Agent", width: "minmax(0,1fr)", cell: ({ agentName }) => <Visible text={agentName} /> },
  {
    title: "Status",
    width: "minmax(0,1.6fr)",
    cell: (health) => <Now health={health} />
  },
  {
    title: "Enabled",
    width: "5rem",
    cell: ({ enabled }) => <span className="text-xs text-ink-soft">{enabled ? "yes" : "no"}</span>
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
    title: "Trigger",
    width: "10rem",
    cell: ({ triggerType, nextFireAt }) => (
      <span className="text-xs text-ink-soft">
        {triggerWord(triggerType)}
        {nextFireAt !== null && (
          <>
            <br />
            next <ClockTime instant={nextFireAt} />
          </>
        )}
      </span>
    )
  },
  {
    title: "Acceptance rate",
    width: "5.5rem",
    cell: ({ acceptance: { decided, rate } }) => (
      <span className="text-xs text-ink-soft">
        {rate === null ? "–" : `${Math.round(rate * 100)}% of ${decided.toLocaleString("en")}`}
      </span>
    )
  },
  {
    title: "Last run · Cost (7d)",
    width: "8rem",
    cell: ({ latest: [newest], weekCostUsd }) => (
      <span className="text-xs text-ink-soft">
        {newest === undefined ? "no runs" : <TimeAgo instant={newest.createdAt} />}
        <br />
        {moneyText(weekCostUsd)}
      </span>
    )
  }
]
