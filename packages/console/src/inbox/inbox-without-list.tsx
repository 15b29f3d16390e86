/**
 * What stands where suggestions would: loading, nothing to decide, or no answer.
 */
import { useQuery } from "@tanstack/react-query"
import type { ReactNode } from "react"
import { Command } from "../parts/command.tsx"
import { FirstAgent, isGiven } from "../parts/first-agent.tsx"
import { CautionIcon } from "../parts/icons.tsx"
import { agentsQuery } from "../server/agent-queries.ts"
import { failureCode, failureSentence } from "../server/problem.ts"
import { recentRunsQuery } from "../server/queries.ts"

/** Nothing waits; what to try depends on whether any agent has worked yet. */
export const EmptyInbox = ({ projectId }: { readonly projectId: string }): ReactNode => {
  const hasRun = (useQuery(recentRunsQuery(projectId)).data?.items.length ?? 0) > 0
  const agents = useQuery(agentsQuery(projectId)).data?.items
  const isWithoutAgent = agents?.every(({ name }) => isGiven(name)) ?? false
  return (
    <div data-testid="empty-inbox" className="enter mx-auto max-w-md px-4 py-14 text-center sm:py-20">
      <Rested />
      <h2 className="mt-6 text-lg font-semibold">{hasRun ? "You're all caught up" : "No suggestions yet"}</h2>
      <p className="mt-2 text-sm text-pretty text-ink-soft">
        {hasRun
          ? "All suggestions are reviewed. New ones appear here when agents react to changes."
          : isWithoutAgent
            ? "Agents react to graph changes, and their suggestions appear here. Create an agent, then import data:"
            : "Agents react to graph changes, and their suggestions appear here. Import data:"}
      </p>
      {isWithoutAgent && (
        <div className="mt-6 grid justify-items-center text-left">
          <FirstAgent />
        </div>
      )}
      <div className="mt-6">
        <Command text={hasRun ? "npx tropism tail" : "npx tropism import package-lock.json"} />
      </div>
      <p className="mt-2.5 text-xs text-ink-faint">
        {hasRun ? "follows graph changes live" : "adds one object per package for the agents to react to"}
      </p>
    </div>
  )
}

/** A shoot at rest: it has nothing to turn to. */
const Rested = (): ReactNode => (
  <svg viewBox="0 0 96 64" aria-hidden="true" className="mx-auto h-16 w-24" fill="none">
    <path d="M12 56h72" className="stroke-line-strong" strokeWidth="2" strokeLinecap="round" />
    <path d="M48 56c0-14 1-22 9-29" className="stroke-leaf" strokeWidth="2.5" strokeLinecap="round" />
    <path
      d="M57 27c-1-9 4-15 14-16 1 10-4 16-14 16Z"
      className="fill-leaf-soft stroke-leaf"
      strokeWidth="2"
    />
    <path d="M49 42c-2-7-8-10-15-9 1 7 6 11 15 9Z" className="fill-leaf-soft stroke-leaf" strokeWidth="2" />
    <circle cx="82" cy="10" r="4.5" className="fill-caution stroke-caution-line" strokeWidth="2" />
  </svg>
)

export const InboxSkeleton = (): ReactNode => (
  <div role="status" className="grid gap-3">
    <span className="sr-only">Loading suggestions …</span>
    {[0, 1, 2].map((place) => (
      <div key={place} aria-hidden="true" className="pulse-dot rounded-2xl border border-line bg-surface p-5">
        <div className="h-4 w-2/5 rounded bg-line" />
        <div className="mt-2.5 h-3 w-1/4 rounded bg-line" />
        <div className="mt-5 h-16 rounded-lg bg-sunken" />
      </div>
    ))}
  </div>
)

interface InboxFailureProps {
  readonly error: unknown
  /** Whether an older list is still on the page. */
  readonly hasList: boolean
}

export const InboxFailure = ({ error, hasList }: InboxFailureProps): ReactNode => (
  <div
    role="alert"
    data-failure={failureCode(error)}
    data-has-older={hasList || undefined}
    className="mb-6 flex items-start gap-2.5 rounded-xl border border-caution-line bg-caution px-4 py-3 text-sm text-caution-ink"
  >
    <CautionIcon className="mt-1" />
    <p>
      {failureSentence(error)} {hasList ? "This data may be out of date; " : ""}
      {hasList ? "retrying." : "Retrying."}
    </p>
  </div>
)
