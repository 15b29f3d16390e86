/**
 * Chains: what followed from what, from the latest root events on.
 */
import type { ChainSummary } from "@tropism/api/chains-api"
import type { ReactNode } from "react"
import { useConsole } from "../frame/console-context.tsx"
import type { Column } from "../parts/data-table.tsx"
import { EmptyState } from "../parts/empty-state.tsx"
import { PageHeader } from "../parts/page-header.tsx"
import { PagedTable } from "../parts/paged-table.tsx"
import { TimeAgo } from "../parts/time-ago.tsx"
import { Visible } from "../parts/visible.tsx"
import { usePagedList } from "../server/paged.ts"
import { countText, moneyText, tokensText } from "../words/amounts.ts"
import { beginningText, stateText } from "./chain-words.ts"

export const ChainsPage = (): ReactNode => {
  const { project } = useConsole()
  const list = usePagedList<ChainSummary>({ projectId: project.id, key: ["chains"], path: "chains" })
  return (
    <>
      <PageHeader
        title="Chains"
        lead="Cause and effect: every change or run that triggered agents, and everything that followed."
      />
      <PagedTable
        label="Chains"
        list={list}
        reading="Loading chains …"
        columns={columns}
        linkTo={({ id }) => ({ to: "/chains/$rootEventId", params: { rootEventId: id } })}
        empty={
          <EmptyState
            title="No chains yet"
            command="npx tropism import objects.jsonl"
            does="imports objects from a file for agents to react to"
          >
            A chain starts when an event triggers an agent and grows as other agents react to its changes.
          </EmptyState>
        }
      />
    </>
  )
}

const columns: ReadonlyArray<Column<ChainSummary>> = [
  {
    title: "Started by",
    width: "minmax(0,2fr)",
    cell: (chain) => <Visible text={beginningText(chain)} />
  },
  {
    title: "Agents",
    width: "minmax(0,1fr)",
    cell: ({ agents }) => (
      <span className="text-xs [overflow-wrap:anywhere]">
        <Visible text={agents.join(", ")} />
      </span>
    )
  },
  {
    title: "State",
    width: "9rem",
    cell: (chain) => (
      <span
        data-state={chain.openRuns > 0 ? "goesOn" : "atRest"}
        data-is-stopped={chain.isStopped}
        className={`text-xs ${chain.isStopped ? "text-caution-ink" : "text-ink-soft"}`}
      >
        {stateText(chain)}
      </span>
    )
  },
  {
    title: "Usage",
    width: "11rem",
    cell: ({ events, runs, use }) => (
      <span data-events={events} data-runs={runs} className="text-xs text-ink-soft">
        {countText(events, "event")}, {countText(runs, "run")}, depth {use.depth}
        <br />
        {tokensText(use.inputTokens + use.outputTokens)}, {moneyText(use.costUsd)}
      </span>
    )
  },
  {
    title: "Started",
    width: "6rem",
    cell: ({ beganAt }) => (
      <span className="text-xs text-ink-soft">
        {beganAt === null ? "no longer available" : <TimeAgo instant={beganAt} />}
      </span>
    )
  }
]
