/**
 * How an agent fares: its latest runs, when it fires, what people decided of its suggestions, what it earned.
 */
import type { Agent } from "@tropism/domain/agent"
import type { ReviewRecord } from "@tropism/domain/autonomy"
import type { Run } from "@tropism/domain/run"
import { useQuery } from "@tanstack/react-query"
import { Link } from "@tanstack/react-router"
import type { ReactNode } from "react"
import { useConsole } from "../frame/console-context.tsx"
import { type Definition, DefinitionList } from "../parts/definition-list.tsx"
import { Failure } from "../parts/failure.tsx"
import { RunStatusBadge } from "../parts/run-status.tsx"
import { TimeAgo } from "../parts/time-ago.tsx"
import { TableHead } from "../parts/table-head.tsx"
import { Visible } from "../parts/visible.tsx"
import { autonomyQuery } from "../server/agent-queries.ts"
import { usePagedList } from "../server/paged.ts"
import { shortText } from "../words/cut-text.ts"
import { durationText } from "../words/durations.ts"
import { AgentUsage } from "./agent-usage.tsx"
import { triggerWord } from "./agent-words.ts"
import { NextFires } from "./next-fires.tsx"

const linkClass = "font-medium text-leaf underline-offset-2 hover:underline"
const runsShown = 10

export const AgentOverview = ({ agent }: { readonly agent: Agent }): ReactNode => {
  const { project } = useConsole()
  const runs = usePagedList<Run>({
    projectId: project.id,
    key: ["runs", "list"],
    path: "runs",
    parameters: { agentId: agent.id, limit: runsShown }
  })
  const autonomy = useQuery(autonomyQuery(project.id, agent.id))
  return (
    <>
      <section aria-label="Summary" className="mb-8">
        <DefinitionList items={facts(agent)} />
        {agent.cronSchedule !== null && agent.triggerType === "schedule" && (
          <div className="mt-4">
            <NextFires cron={agent.cronSchedule} zone={agent.timezone} />
          </div>
        )}
      </section>
      <section aria-label="Latest runs" className="mb-8">
        <h2 className="mb-2 text-sm font-semibold">Latest runs</h2>
        {runs.error !== null && <Failure error={runs.error} />}
        {runs.rows.length === 0 && !runs.isPending && <p className="text-sm text-ink-soft">No runs yet.</p>}
        <ul className="m-0 list-none p-0">
          {runs.rows.slice(0, runsShown).map((run) => (
            <li
              key={run.id}
              className="flex flex-wrap items-center gap-x-3 border-b border-line py-2 text-sm"
            >
              <RunStatusBadge status={run.status} pauseReason={run.pauseReason} waitingFor={run.waitingFor} />
              <Link
                to="/runs/$runId"
                params={{ runId: run.id }}
                className="min-w-0 grow truncate font-medium hover:underline"
              >
                <Visible text={shortText(run.errorMessage ?? run.summary ?? "A run", 1, 140)} />
              </Link>
              <span className="text-xs text-ink-faint">
                <TimeAgo instant={run.createdAt} />
              </span>
            </li>
          ))}
        </ul>
        <p className="mt-2 text-sm">
          <Link to="/runs" search={{ agentId: agent.id }} className={linkClass}>
            All runs
          </Link>
        </p>
      </section>
      <AgentUsage agent={agent} />
      <section aria-label="Suggestions">
        <h2 className="mb-2 text-sm font-semibold">Review outcomes</h2>
        {autonomy.error !== null && <Failure error={autonomy.error} />}
        {autonomy.data !== undefined && <Reviews records={autonomy.data.records} />}
      </section>
    </>
  )
}

const facts = (agent: Agent): ReadonlyArray<Definition> => [
  { name: "Trigger", value: triggerWord(agent.triggerType) },
  ...(agent.triggerType === "reaction"
    ? [
        {
          name: "Reactions",
          value: (
            <Link to="/reactions/$agentId" params={{ agentId: agent.id }} className={linkClass}>
              Queue and trigger log
            </Link>
          )
        }
      ]
    : []),
  { name: "Mode", value: agent.executionMode },
  {
    name: "Model",
    value:
      agent.model === null ? (
        "the server's default"
      ) : (
        <Visible text={`${agent.model.provider}:${agent.model.name}`} />
      )
  },
  { name: "Tools", value: agent.tools.length === 0 ? "none" : <Visible text={agent.tools.join(", ")} /> },
  { name: "Run timeout", value: timeText(agent.defaultTimeoutMs) },
  { name: "Last changed", value: <TimeAgo instant={agent.updatedAt} /> }
]

const timeText = (timeoutMs: number | null): string =>
  timeoutMs === null ? "no limit" : durationText(timeoutMs)

const Reviews = ({ records }: { readonly records: ReadonlyArray<ReviewRecord> }): ReactNode =>
  records.length === 0 ? (
    <p className="text-sm text-ink-soft">No suggestions from this version have been reviewed yet.</p>
  ) : (
    <table className="w-full text-left text-sm">
      <TableHead titles={["Change", "Accepted", "Edited", "Rejected", "Undone", "Rate", "Trust"]} />
      <tbody>
        {records.map((record) => (
          <tr key={`${record.operation} ${record.objectType}`} className="border-b border-line">
            <th scope="row" className="py-1.5 pr-3 font-normal">
              {record.operation} <Visible text={record.objectType} />
            </th>
            <td className="pr-3">{record.accepted}</td>
            <td className="pr-3">{record.edited}</td>
            <td className="pr-3">{record.rejected}</td>
            <td className="pr-3">{record.reverted}</td>
            <td className="pr-3">
              {record.acceptanceRate === null ? "–" : `${Math.round(record.acceptanceRate * 100)}%`}
            </td>
            <td>{record.promotionId === null ? "Asks" : "Trusted (auto-approved)"}</td>
          </tr>
        ))}
      </tbody>
    </table>
  )
