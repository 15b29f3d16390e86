/**
 * One run: what happens in it or how it ended, its steps, its log, and what the model was shown.
 */
import { isTerminal, type Run } from "@tropism/domain/run"
import { useQuery } from "@tanstack/react-query"
import { Link, useParams } from "@tanstack/react-router"
import type { ReactNode } from "react"
import { useConsole } from "../frame/console-context.tsx"
import { Command } from "../parts/command.tsx"
import { type Definition, DefinitionList } from "../parts/definition-list.tsx"
import { Failure } from "../parts/failure.tsx"
import { LongText } from "../parts/long-text.tsx"
import { NotShown } from "../parts/not-shown.tsx"
import { PageHeader } from "../parts/page-header.tsx"
import { RunStatusBadge } from "../parts/run-status.tsx"
import { type Tab, Tabs } from "../parts/tabs.tsx"
import { TimeAgo } from "../parts/time-ago.tsx"
import { UndoButton } from "../parts/undo-button.tsx"
import { Visible } from "../parts/visible.tsx"
import { runObjectsQuery, runQuery } from "../server/run-queries.ts"
import { durationText } from "../words/durations.ts"
import { ChainBound } from "./chain-bound.tsx"
import { LiveWords } from "./live-words.tsx"
import { ModelCallList } from "./model-call-list.tsx"
import { ReplayButton } from "./replay-dialog.tsx"
import { RunActions } from "./run-actions.tsx"
import { RunLog } from "./run-log.tsx"
import { RunObjects } from "./run-objects.tsx"
import { AsksBelow, SpawnedRuns, WaitingForPeople } from "./run-relatives.tsx"
import { RunSteps } from "./run-steps.tsx"
import { RunTimeline } from "./run-timeline.tsx"
import { outcomeText, totalText, usedText } from "./run-words.ts"
import { Waker } from "./waker.tsx"
import { useFreshRecords } from "./use-fresh-records.ts"
import { type LiveEstimate, useLiveAnswer } from "./use-live-answer.ts"

const linkClass = "font-medium text-leaf underline-offset-2 hover:underline"

export const RunPage = (): ReactNode => {
  const { runId = "" } = useParams({ strict: false })
  const { project } = useConsole()
  const { data: run, error } = useQuery(runQuery(project.id, runId))
  if (run === undefined)
    return <NotShown title="Run" error={error} reading="Loading run …" to="/runs" way="All runs" />
  return <KnownRun key={run.id} run={run} error={error} />
}

const KnownRun = ({ run, error }: { readonly run: Run; readonly error: unknown }): ReactNode => {
  useFreshRecords(run)
  const answer = useLiveAnswer(run)
  return (
    <>
      <PageHeader
        above={<Link to="/runs">Runs</Link>}
        title={
          <>
            <Visible text={run.agentName} />{" "}
            <span className="align-middle">
              <RunStatusBadge status={run.status} pauseReason={run.pauseReason} waitingFor={run.waitingFor} />
            </span>
          </>
        }
      >
        <RunActions run={run} />
        <ReplayButton run={run} />
        {isTerminal(run.status) && <UndoRun run={run} />}
      </PageHeader>
      {error !== null && <Failure error={error} hasOlder triesAgain />}
      <p data-testid="outcome" className="mb-6 max-w-prose text-sm text-pretty">
        <LongText text={outcomeText(run)} />{" "}
        {run.pauseReason === "budget" && run.rootEventId !== null && (
          <ChainBound rootEventId={run.rootEventId} />
        )}
      </p>
      {run.status === "failed" && <Again run={run} />}
      <LiveWords answer={answer} />
      <WaitingForPeople run={run} />
      <AsksBelow run={run} />
      <section aria-label="About this run" className="mb-8">
        <DefinitionList items={[...facts(run, answer?.estimate), ...marks(run)]} />
      </section>
      <SpawnedRuns run={run} />
      <Tabs label="Run views" tabs={viewsOf(run)} />
      <div className="mt-8 max-w-xl">
        <Command text={`npx tropism runs show ${run.id}`} />
      </div>
    </>
  )
}

/** Where a failed run is tried again: with what woke it, where that is kept, else at its agent. */
const Again = ({ run: { agentId, trigger } }: { readonly run: Run }): ReactNode => (
  <p className="-mt-4 mb-6 text-sm">
    {trigger.type === "reaction" || trigger.type === "mcpEvent" ? (
      <Link to="/reactions/$agentId" params={{ agentId }} search={{ tab: "dead" }} className={linkClass}>
        Retry from dead letters
      </Link>
    ) : (
      <Link to="/agents/$agentId" params={{ agentId }} className={linkClass}>
        Run the agent again
      </Link>
    )}
  </p>
)

/** Offered where there is something to undo; an approval may make it so at any time. */
const UndoRun = ({ run }: { readonly run: Run }): ReactNode => {
  const { project } = useConsole()
  const { data } = useQuery(runObjectsQuery(project.id, run.id))
  if (data === undefined) return null
  return (
    <UndoButton
      path={`runs/${encodeURIComponent(run.id)}/undo`}
      word="Undo this run"
      nothing={data.changedGraph ? undefined : "No changes to undo"}
    />
  )
}

/** The same log in five views. */
const viewsOf = (run: Run): ReadonlyArray<Tab> => [
  { id: "steps", title: "Steps", count: run.stepCount, content: () => <RunSteps run={run} /> },
  { id: "timeline", title: "Timeline", content: () => <RunTimeline run={run} /> },
  { id: "objects", title: "Objects", content: () => <RunObjects run={run} /> },
  { id: "calls", title: "Model calls", content: () => <ModelCallList run={run} /> },
  { id: "log", title: "Log", content: () => <RunLog run={run} /> }
]

const facts = (run: Run, now: LiveEstimate | undefined): ReadonlyArray<Definition> => [
  { name: "Trigger", value: <Waker run={run} leadsToEvent /> },
  {
    name: "Agent",
    value: (
      <>
        <Link to="/agents/$agentId" params={{ agentId: run.agentId }} className={linkClass}>
          <Visible text={run.agentName} />
        </Link>
        , version {run.agentVersion}
      </>
    )
  },
  {
    name: "Time",
    value: (
      <span data-instant={run.completedAt === null ? "made" : "ended"}>
        {run.completedAt === null ? "created " : "ended "}
        <TimeAgo instant={run.completedAt ?? run.createdAt} />
        {run.durationMs !== null && `, took ${durationText(run.durationMs)}`}
        {run.attempt > 1 && `, attempt ${run.attempt}`}
      </span>
    )
  },
  {
    name: "Usage",
    value: (
      <span data-testid="used">
        {[usedText(run, now), totalText(run)]
          .filter((text) => text !== undefined)
          .join("; including sub-agent runs ")}
      </span>
    )
  },
  ...(run.rootEventId === null
    ? []
    : [
        {
          name: "Chain",
          value: (
            <Link to="/chains/$rootEventId" params={{ rootEventId: run.rootEventId }} className={linkClass}>
              View full chain
            </Link>
          )
        }
      ])
]

/** What a person should know before they believe what the run did. */
const marks = (run: Run): ReadonlyArray<Definition> => [
  ...(run.parentRunId === null
    ? []
    : [
        {
          name: "Spawned by",
          value: (
            <Link to="/runs/$runId" params={{ runId: run.parentRunId }} className={linkClass}>
              parent run
            </Link>
          )
        }
      ]),
  ...(run.backtestId === null
    ? []
    : [{ name: "Backtest", value: "Part of a backtest: it only suggested changes." }]),
  ...(run.taintedBy.length === 0
    ? []
    : [{ name: "Untrusted", value: "It read untrusted sources and can only suggest." }]),
  ...(run.missingTools.length === 0
    ? []
    : [
        {
          name: "Unavailable tools",
          value: (
            <span data-testid="missing-tools">
              <Visible text={run.missingTools.join(", ")} />
            </span>
          )
        }
      ])
]
