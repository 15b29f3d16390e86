/**
 * What belongs to a run: what it asks and suggests of people, and the runs that it spawned.
 */
import type { Run } from "@tropism/domain/run"
import { useQuery } from "@tanstack/react-query"
import { Link } from "@tanstack/react-router"
import type { ReactNode } from "react"
import { useConsole } from "../frame/console-context.tsx"
import { RunStatusBadge } from "../parts/run-status.tsx"
import { Visible } from "../parts/visible.tsx"
import { usePagedList } from "../server/paged.ts"
import { pendingTasksQuery } from "../server/queries.ts"

const linkClass = "font-medium text-leaf underline-offset-2 hover:underline"

interface WaitingForPeopleProps {
  readonly run: Run
  /** Foreign text, where more is to be said than what it waits for. */
  readonly title?: string
}

/** What waits for a person because of this run; nothing where nothing does. */
export const WaitingForPeople = ({ run, title }: WaitingForPeopleProps): ReactNode => {
  const { project } = useConsole()
  const { data } = useQuery(pendingTasksQuery(project.id))
  const waiting = (data?.tasks ?? []).filter((task) => "runId" in task && task.runId === run.id)
  if (waiting.length === 0) return null
  return (
    <section
      aria-label="Waiting for people"
      className="mb-8 rounded-xl border border-line bg-sunken px-4 py-3 text-sm"
    >
      <h2 className="mb-1 font-medium">
        {title !== undefined ? (
          <Visible text={title} />
        ) : run.pauseReason === "question" ? (
          "Continues after an answer"
        ) : (
          "Pending review"
        )}
      </h2>
      <ul className="m-0 list-none p-0">
        {waiting.map(({ id, number, title }) => (
          <li key={id}>
            <Link to="/tasks/$taskId" params={{ taskId: id }} className={linkClass}>
              <Visible text={`#${number} ${title}`} />
            </Link>
          </li>
        ))}
      </ul>
    </section>
  )
}

/** Who below a run asks a person, so that the run waits as well; nothing while all of them work. */
export const AsksBelow = ({ run }: { readonly run: Run }): ReactNode =>
  run.pauseReason === "subAgents" && <AsksAmong parent={run} />

const AsksAmong = ({ parent }: { readonly parent: Run }): ReactNode => {
  const { project } = useConsole()
  const { rows } = usePagedList<Run>(spawnedBy(project.id, parent))
  return rows.map((run) =>
    run.pauseReason === "question" ? (
      <WaitingForPeople key={run.id} run={run} title={`${run.agentName} (sub-agent) asks a person`} />
    ) : (
      <AsksBelow key={run.id} run={run} />
    )
  )
}

const spawnedBy = (projectId: string, run: Run) => ({
  projectId,
  key: ["runs", "spawned"],
  path: "runs",
  parameters: { parentRunId: run.id }
})

/** The runs that it spawned; nothing where it spawned none. */
export const SpawnedRuns = ({ run }: { readonly run: Run }): ReactNode => {
  const { project } = useConsole()
  const { rows } = usePagedList<Run>(spawnedBy(project.id, run))
  if (rows.length === 0) return null
  return (
    <section aria-label="Sub-agent runs" data-testid="spawned-runs" className="mb-8">
      <h2 className="mb-1 text-sm font-semibold">Sub-agent runs</h2>
      <ul className="m-0 list-none p-0 text-sm">
        {rows.map((child) => (
          <li key={child.id} className="flex flex-wrap items-center gap-2 border-b border-line py-1.5">
            <RunStatusBadge
              status={child.status}
              pauseReason={child.pauseReason}
              waitingFor={child.waitingFor}
            />
            <Link to="/runs/$runId" params={{ runId: child.id }} className={linkClass}>
              <Visible text={child.agentName} />
            </Link>
          </li>
        ))}
      </ul>
    </section>
  )
}
