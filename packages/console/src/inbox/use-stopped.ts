/**
 * What stopped and goes on only when a person does something: agents that disabled themselves, runs that rest at a limit.
 *
 * One read for all runs; the agents are told by the health of the project, which the inbox reads anyway.
 * Of either only so many are named, and what is beyond them is said.
 */
import type { HealthFinding } from "@tropism/domain/health"
import { isResumable, type Run } from "@tropism/domain/run"
import { useQuery } from "@tanstack/react-query"
import { useMemo } from "react"
import { limits } from "../limits.ts"
import { runStatusWord } from "../parts/run-status.tsx"
import { healthQuery } from "../server/health-queries.ts"
import { pausedRunsQuery } from "../server/run-queries.ts"

export interface Stopped {
  /** `agents` and `runs` are those that are not named. */
  readonly type: "agent" | "agents" | "run" | "runs"
  /** The agent's id, or the run's; the type where there is none. */
  readonly id: string
  readonly title: string
  /** Why, in the words of whoever stopped it. */
  readonly why: string | null
  readonly createdAt: string | null
  /** What is to be done, on the link that leads there. */
  readonly step: string
  /** The chain whose budget may be what stopped it. */
  readonly spentChain?: string
}

export const useStopped = (projectId: string): ReadonlyArray<Stopped> => {
  const { data: health } = useQuery({
    ...healthQuery(projectId),
    refetchInterval: limits.longListRefreshIntervalMs
  })
  const { data: paused } = useQuery(pausedRunsQuery(projectId))
  return useMemo(
    () => [
      ...(health?.findings ?? []).flatMap(ofAgent),
      ...(paused?.items ?? []).flatMap(ofRun),
      ...(typeof paused?.nextCursor === "string" ? [moreRuns] : [])
    ],
    [health, paused]
  )
}

const ofAgent = ({ check, detail, said, state, subject }: HealthFinding): ReadonlyArray<Stopped> => {
  if (state !== "fault" || check !== "agent" || subject?.type !== "agent") return []
  const told = { title: detail, why: said, createdAt: null }
  return [
    subject.id === null
      ? { ...told, type: "agents", id: "agents", step: "View agents" }
      : { ...told, type: "agent", id: subject.id, step: "View agent" }
  ]
}

const moreRuns: Stopped = {
  type: "runs",
  id: "runs",
  title: "More runs are paused than are listed here.",
  why: null,
  createdAt: null,
  step: "View all paused runs"
}

const ofRun = ({
  agentName,
  createdAt,
  errorMessage,
  id,
  pauseReason,
  rootEventId,
  summary
}: Run): ReadonlyArray<Stopped> =>
  pauseReason === null || !isResumable(pauseReason)
    ? []
    : [
        {
          type: "run",
          id,
          title: `A run of ${agentName} is ${runStatusWord("paused", pauseReason)}.`,
          why: errorMessage ?? summary,
          ...(pauseReason === "budget" && rootEventId !== null && { spentChain: rootEventId }),
          createdAt,
          step: "View and resume"
        }
      ]
