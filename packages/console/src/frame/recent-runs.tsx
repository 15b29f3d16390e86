/**
 * What the agents do and did last: status, summary and how long it took; those at work stand first.
 */
import type { Run } from "@tropism/domain/run"
import { useQuery } from "@tanstack/react-query"
import { Link } from "@tanstack/react-router"
import type { ReactNode } from "react"
import { limits } from "../limits.ts"
import { InlineCommand } from "../parts/command.tsx"
import { RunSign, runStatusWord } from "../parts/run-status.tsx"
import { TimeAgo, useNow } from "../parts/time-ago.tsx"
import { Visible } from "../parts/visible.tsx"
import { recentRunsQuery, runsAtWorkQuery } from "../server/queries.ts"
import { durationText } from "../words/durations.ts"

export const RecentRuns = ({ projectId }: { readonly projectId: string }): ReactNode => {
  const { data, isError } = useQuery(recentRunsQuery(projectId))
  const { data: atWork } = useQuery(runsAtWorkQuery(projectId))
  const runs = data && runningFirst(data.items, atWork?.items ?? [])
  return (
    <section aria-labelledby="recent-runs" className="min-w-0">
      <h2 id="recent-runs" className="px-1 text-sm font-semibold">
        Recent runs
      </h2>
      {runs?.length === 0 && (
        <p className="mt-3 rounded-xl border border-dashed border-line-strong px-4 py-5 text-xs text-pretty text-ink-soft">
          No runs yet. Runs appear here when an agent is triggered. To trigger one yourself:
          <span className="mt-2 block text-ink">
            <InlineCommand text="npx tropism run AGENT" />
          </span>
        </p>
      )}
      {isError && !data && (
        <p className="mt-3 px-1 text-xs text-ink-faint">Runs cannot be loaded at the moment.</p>
      )}
      <ol className="mt-3 grid grid-cols-1">
        {runs?.map((run) => (
          <RunItem key={run.id} run={run} />
        ))}
      </ol>
    </section>
  )
}

/** A run at work that began before all of the recent ones is told too; what has ended since it was read is not told twice. */
const runningFirst = (recent: ReadonlyArray<Run>, atWork: ReadonlyArray<Run>): ReadonlyArray<Run> => {
  const known = new Set(recent.map(({ id }) => id))
  const all = [...recent, ...atWork.filter(({ id }) => !known.has(id))]
  const isRunning = ({ status }: Run): boolean => status === "running"
  return [...all.filter(isRunning), ...all.filter((run) => !isRunning(run))].slice(0, limits.recentRuns)
}

const RunItem = ({ run }: { readonly run: Run }): ReactNode => {
  const text = run.errorMessage ?? run.summary
  return (
    <li className="enter flex gap-3 border-b border-line px-1 py-3 first:pt-1 last:border-0">
      <span className="mt-0.5">
        <RunSign status={run.status} />
      </span>
      <div className="min-w-0 grow">
        <p className="flex items-baseline justify-between gap-3 text-xs">
          <Link
            to="/runs/$runId"
            params={{ runId: run.id }}
            className="min-w-0 truncate font-medium underline-offset-2 hover:underline"
          >
            <Visible text={run.agentName} />
          </Link>
          <span className="shrink-0 text-ink-faint">
            <Duration run={run} />
          </span>
        </p>
        {text !== null && text !== "" && (
          <p
            className={`mt-0.5 line-clamp-2 text-xs ${run.errorMessage === null ? "text-ink-soft" : "text-removed-ink"}`}
          >
            <Visible text={text} />
          </p>
        )}
        <p
          data-status={run.status}
          data-pause-reason={run.pauseReason}
          className="mt-0.5 truncate text-2xs text-ink-faint"
        >
          {runStatusWord(run.status, run.pauseReason, run.waitingFor)} · <TimeAgo instant={run.createdAt} />
          {run.model !== null && (
            <>
              {" · "}
              <Visible text={run.model} />
            </>
          )}
        </p>
      </div>
    </li>
  )
}

/** How long the run took, or has been at it. */
const Duration = ({ run }: { readonly run: Run }): ReactNode => {
  const now = useNow()
  if (run.durationMs !== null) return durationText(run.durationMs)
  if (run.status !== "running" || run.startedAt === null) return null
  const elapsedMs = now - Date.parse(run.startedAt)
  return elapsedMs < 1_000 ? "…" : durationText(elapsedMs - (elapsedMs % 1_000))
}
