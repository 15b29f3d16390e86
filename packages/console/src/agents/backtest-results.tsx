/**
 * A dry run event by event: what was suggested then, and what the agent would do now.
 */
import type { Page } from "@tropism/api/page"
import type { BacktestResult } from "@tropism/domain/backtest"
import { useQuery } from "@tanstack/react-query"
import { Link } from "@tanstack/react-router"
import type { ReactNode } from "react"
import { useConsole } from "../frame/console-context.tsx"
import { limits } from "../limits.ts"
import { JsonView } from "../parts/json-view.tsx"
import { Visible } from "../parts/visible.tsx"
import { agentPath } from "../server/agent-queries.ts"
import { reading } from "../server/reading.ts"

const resultsQuery = (projectId: string, agentId: string, backtestId: string) =>
  reading<Page<BacktestResult>>({
    projectId,
    key: ["backtest-results", backtestId],
    path: agentPath(agentId, `/backtests/${encodeURIComponent(backtestId)}/results`),
    refreshMs: limits.refreshIntervalMs
  })

interface BacktestResultsProps {
  readonly agentId: string
  readonly backtestId: string
}

export const BacktestResults = ({ agentId, backtestId }: BacktestResultsProps): ReactNode => {
  const { project } = useConsole()
  const { data } = useQuery(resultsQuery(project.id, agentId, backtestId))
  return (
    <ol aria-label="Events" className="m-0 mt-4 grid list-none gap-3 p-0">
      {data?.items.map(({ number, event, runId, runStatus, earlier, now }) => (
        <li key={number}>
          <p className="mb-1.5 text-sm">
            <Link
              to="/events/$eventId"
              params={{ eventId: event.id }}
              className="font-medium text-leaf underline-offset-2 hover:underline"
            >
              <Visible text={`${event.objectType} ${event.type}`} />
            </Link>
            {runId !== null && (
              <>
                ,{" "}
                <Link
                  to="/runs/$runId"
                  params={{ runId }}
                  className="font-medium text-leaf underline-offset-2 hover:underline"
                >
                  its run: {runStatus}
                </Link>
              </>
            )}
          </p>
          <JsonView value={{ earlier, now }} label="Suggested earlier, and now" />
        </li>
      ))}
    </ol>
  )
}
