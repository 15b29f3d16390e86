/**
 * What the agents did and do: the list of runs, the newest first.
 */
import { RunStatus, type Run } from "@tropism/domain/run"
import { useQuery } from "@tanstack/react-query"
import type { ReactNode } from "react"
import { useConsole } from "../frame/console-context.tsx"
import type { Column } from "../parts/data-table.tsx"
import { EmptyState } from "../parts/empty-state.tsx"
import { FilterBar, type Filter } from "../parts/filter-bar.tsx"
import { PageHeader } from "../parts/page-header.tsx"
import { PagedTable } from "../parts/paged-table.tsx"
import { RunStatusBadge, runStatusWord } from "../parts/run-status.tsx"
import { TimeAgo } from "../parts/time-ago.tsx"
import { useAddress } from "../parts/use-address.ts"
import { Visible } from "../parts/visible.tsx"
import { agentNamesQuery } from "../server/agent-queries.ts"
import { usePagedList } from "../server/paged.ts"
import { moneyText, tokensText } from "../words/amounts.ts"
import { shortText } from "../words/cut-text.ts"
import { durationText } from "../words/durations.ts"
import { instantOf } from "../words/local-time.ts"
import { outcomeText, triggerChoices } from "./run-words.ts"
import { Waker } from "./waker.tsx"

const filtersOf = (agents: ReadonlyMap<string, string>): ReadonlyArray<Filter> => [
  { type: "text", name: "query", label: "Search", hint: "Search summaries and errors" },
  {
    type: "choice",
    name: "status",
    label: "Status",
    choices: RunStatus.literals.map((value) => ({ value, label: runStatusWord(value) }))
  },
  { type: "choice", name: "trigger", label: "Trigger", choices: triggerChoices },
  {
    type: "choice",
    name: "agentId",
    label: "Agent",
    choices: [...agents].map(([value, label]) => ({ value, label }))
  },
  { type: "time", name: "from", label: "From" },
  { type: "time", name: "to", label: "until" }
]

const noAgents: ReadonlyMap<string, string> = new Map()

export const RunsPage = (): ReactNode => {
  const { project } = useConsole()
  const { data: agents = noAgents } = useQuery(agentNamesQuery(project.id))
  const [{ query, status, trigger, agentId, parentRunId, from, to }] = useAddress()
  const parameters = {
    query,
    status,
    trigger,
    agentId,
    parentRunId,
    from: instantOf(from ?? ""),
    to: instantOf(to ?? "")
  }
  const list = usePagedList<Run>({ projectId: project.id, key: ["runs", "list"], path: "runs", parameters })
  const isFiltered = Object.values(parameters).some((value) => value !== undefined)
  return (
    <>
      <PageHeader title="Runs" lead="Every agent run, with its trigger, outcome and cost." />
      <FilterBar label="Filter runs" filters={filtersOf(agents)} />
      <PagedTable
        label="Runs"
        list={list}
        reading="Loading runs …"
        columns={columns}
        linkTo={({ id }) => ({ to: "/runs/$runId", params: { runId: id } })}
        empty={<NoRuns isFiltered={isFiltered} />}
      />
    </>
  )
}

const NoRuns = ({ isFiltered }: { readonly isFiltered: boolean }): ReactNode =>
  isFiltered ? (
    <EmptyState title="No matching runs">Choose other filters, or show all runs.</EmptyState>
  ) : (
    <EmptyState title="No runs yet" command="npx tropism run AGENT" does="triggers an agent">
      Runs appear here when an agent is triggered.
    </EmptyState>
  )

const columns: ReadonlyArray<Column<Run>> = [
  {
    title: "Agent",
    width: "minmax(0,1fr)",
    cell: (run) => (
      <>
        <Visible text={run.agentName} />{" "}
        <span className="text-xs font-normal text-ink-faint">version {run.agentVersion}</span>
      </>
    )
  },
  {
    title: "Outcome",
    width: "minmax(0,2fr)",
    cell: (run) => (
      <span className="block min-w-0">
        <RunStatusBadge status={run.status} pauseReason={run.pauseReason} waitingFor={run.waitingFor} />
        <span className="mt-0.5 block truncate text-xs text-ink-soft">
          <Visible text={shortText(outcomeText(run), 1, 200)} />
        </span>
      </span>
    )
  },
  {
    title: "Trigger",
    width: "minmax(0,1fr)",
    cell: (run) => (
      <span className="text-xs [overflow-wrap:anywhere]">
        <Waker run={run} />
      </span>
    )
  },
  {
    title: "Usage",
    width: "9rem",
    cell: ({ usage, costUsd, stepCount, durationMs }) => (
      <span className="text-xs text-ink-soft">
        {stepCount} {stepCount === 1 ? "step" : "steps"}
        {durationMs !== null && `, ${durationText(durationMs)}`}
        <br />
        {tokensText(usage.inputTokens + usage.outputTokens)}, {moneyText(costUsd)}
      </span>
    )
  },
  {
    title: "Created",
    width: "6rem",
    cell: ({ createdAt }) => (
      <span className="text-xs text-ink-soft">
        <TimeAgo instant={createdAt} />
      </span>
    )
  }
]
