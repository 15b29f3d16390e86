/**
 * Agents and runs that stopped and wait for a person, each with its one next step.
 */
import { Link, type LinkProps } from "@tanstack/react-router"
import { type ReactNode, useId } from "react"
import { LongText } from "../parts/long-text.tsx"
import { TimeAgo } from "../parts/time-ago.tsx"
import { Visible } from "../parts/visible.tsx"
import { ChainBound } from "../runs/chain-bound.tsx"
import { useLinkedCard } from "./linked-card.ts"
import { TaskSection } from "./task-frame.tsx"
import type { Stopped } from "./use-stopped.ts"

export const StoppedList = ({ stopped }: { readonly stopped: ReadonlyArray<Stopped> }): ReactNode => (
  <TaskSection title="Stopped" words="need attention" count={stopped.filter(isNamed).length}>
    {stopped.map((each) => (
      <li key={each.id} className="enter min-w-0">
        <StoppedCard stopped={each} />
      </li>
    ))}
  </TaskSection>
)

const StoppedCard = ({ stopped }: { readonly stopped: Stopped }): ReactNode => {
  const titleId = useId()
  const { attributes, frame } = useLinkedCard(stopped.id)
  return (
    <article
      {...attributes}
      data-stopped={stopped.type}
      aria-labelledby={titleId}
      className={`grid gap-1.5 rounded-2xl border bg-surface p-4 shadow-card sm:p-5 ${frame}`}
    >
      <h3 id={titleId} className="font-semibold text-pretty">
        <Visible text={stopped.title} />
      </h3>
      {stopped.why !== null && stopped.why !== "" && (
        <p className="text-sm text-ink-soft">
          <LongText text={stopped.why} />
        </p>
      )}
      <p className="flex flex-wrap items-center gap-x-3 gap-y-1 text-sm">
        <StepLink stopped={stopped} />
        {stopped.spentChain !== undefined && <ChainBound rootEventId={stopped.spentChain} />}
        {stopped.createdAt !== null && (
          <span className="text-xs text-ink-faint">
            <TimeAgo instant={stopped.createdAt} />
          </span>
        )}
      </p>
    </article>
  )
}

const StepLink = ({ stopped: { id, step, type } }: { readonly stopped: Stopped }): ReactNode => {
  return (
    <Link {...placeOf(type, id)} className="rounded font-medium text-leaf underline-offset-2 hover:underline">
      {step}
    </Link>
  )
}

const placeOf = (type: Stopped["type"], id: string): LinkProps => {
  switch (type) {
    case "agent":
      return { to: "/agents/$agentId", params: { agentId: id } }
    case "agents":
      return { to: "/agents", search: { enabled: "false" } }
    case "run":
      return { to: "/runs/$runId", params: { runId: id } }
    case "runs":
      return { to: "/runs", search: { status: "paused" } }
  }
}

const isNamed = ({ type }: Stopped): boolean => type === "agent" || type === "run"
