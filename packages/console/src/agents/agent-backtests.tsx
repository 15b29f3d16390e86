/**
 * Dry runs: the agent over events that happened, with nobody touched by it, and how far it agrees with what people decided.
 */
import type { Agent } from "@tropism/domain/agent"
import { useQuery } from "@tanstack/react-query"
import type { ReactNode } from "react"
import { useConsole } from "../frame/console-context.tsx"
import { Button } from "../parts/button.tsx"
import { DefinitionList } from "../parts/definition-list.tsx"
import { Failure } from "../parts/failure.tsx"
import { Skeleton } from "../parts/skeleton.tsx"
import { TimeAgo } from "../parts/time-ago.tsx"
import { useAddress } from "../parts/use-address.ts"
import { Visible } from "../parts/visible.tsx"
import { backtestQuery, backtestsQuery } from "../server/agent-queries.ts"
import { countText, moneyText } from "../words/amounts.ts"
import { BacktestResults } from "./backtest-results.tsx"
import { BeginDryRun } from "./begin-dry-run.tsx"
import { CancelDryRun } from "./cancel-dry-run.tsx"

export const AgentBacktests = ({ agent }: { readonly agent: Agent }): ReactNode => {
  const { project, canAnswer } = useConsole()
  const [{ backtest: chosen }, change] = useAddress()
  const { data, error } = useQuery(backtestsQuery(project.id, agent.id))
  return (
    <>
      <p className="mb-4 max-w-prose text-sm text-ink-soft">
        Runs the current version against past events that match its trigger, or against the latest change of
        an object you choose. It reads the graph as it was then and only suggests; nothing is changed.
      </p>
      {canAnswer ? (
        <BeginDryRun agent={agent} onBegun={(id) => change({ backtest: id })} />
      ) : (
        <p data-testid="editors-only" className="mb-6 text-sm text-ink-soft">
          Only editors can start one.
        </p>
      )}
      {error !== null && <Failure error={error} hasOlder={data !== undefined} triesAgain />}
      {data === undefined && error === null && <Skeleton label="Loading backtests …" />}
      {data?.items.length === 0 && (
        <p data-testid="no-dry-runs" className="mb-2 text-sm text-ink-soft">
          No backtests yet.
        </p>
      )}
      <ul aria-label="Backtests" className="m-0 list-none p-0">
        {data?.items.map((backtest) => (
          <li key={backtest.id} className="border-b border-line py-2 text-sm">
            <Button
              data-status={backtest.status}
              size="small"
              weight="quiet"
              aria-expanded={chosen === backtest.id}
              onClick={() => change({ backtest: chosen === backtest.id ? undefined : backtest.id })}
            >
              Version {backtest.agentVersion}: {backtest.status}, {backtest.events.done} of{" "}
              {countText(backtest.events.chosen, "event")}
            </Button>{" "}
            <span className="text-xs text-ink-faint">
              <TimeAgo instant={backtest.createdAt} /> by <Visible text={backtest.createdBy} />
            </span>
            {canAnswer && <CancelDryRun backtest={backtest} />}
            {chosen === backtest.id && <Report agentId={agent.id} backtestId={backtest.id} />}
          </li>
        ))}
      </ul>
    </>
  )
}

interface ReportProps {
  readonly agentId: string
  readonly backtestId: string
}

const Report = ({ agentId, backtestId }: ReportProps): ReactNode => {
  const { project } = useConsole()
  const { data, error } = useQuery(backtestQuery(project.id, agentId, backtestId))
  if (data === undefined) return error === null ? <Skeleton label="Loading …" /> : <Failure error={error} />
  const { report } = data
  const { agreed, judged } = report.agreement
  return (
    <div className="mt-3 mb-4 pl-3">
      {data.detail !== null && (
        <p className="mb-3">
          <Visible text={data.detail} />
        </p>
      )}
      <DefinitionList
        items={[
          {
            name: "Agreement",
            value:
              judged === 0
                ? "no reviewed suggestions in this sample"
                : `${agreed} of ${judged} match the reviewers' decisions`
          },
          { name: "New suggestions", value: String(report.newSuggestions) },
          {
            name: "Runs",
            value: `${report.runs.completed} completed, ${report.runs.failed} failed, ${report.runs.paused} paused`
          },
          { name: "Cost", value: moneyText(report.costUsd) }
        ]}
      />
      <BacktestResults backtest={data} />
    </div>
  )
}
