/**
 * Whom an event woke, who waits, and who was not woken and why.
 */
import type { Explanation } from "@tropism/api/explanations-api"
import { useQuery } from "@tanstack/react-query"
import { Link } from "@tanstack/react-router"
import type { ReactNode } from "react"
import { useConsole } from "../frame/console-context.tsx"
import { Failure } from "../parts/failure.tsx"
import { RunStatusBadge } from "../parts/run-status.tsx"
import { Skeleton } from "../parts/skeleton.tsx"
import { Visible } from "../parts/visible.tsx"
import { explanationsQuery } from "../server/feed-queries.ts"
import { countText } from "../words/amounts.ts"

const outcomes: ReadonlyArray<Explanation["outcome"]> = ["woke", "waiting", "skipped", "refused"]

const words: Readonly<Record<Explanation["outcome"], string>> = {
  woke: "triggered",
  waiting: "waiting",
  skipped: "busy",
  refused: "not triggered"
}

const colours: Readonly<Record<Explanation["outcome"], string>> = {
  woke: "bg-leaf-soft text-leaf",
  waiting: "bg-caution text-caution-ink",
  skipped: "bg-sunken text-ink-soft",
  refused: "bg-sunken text-ink-soft"
}

export const WokenList = ({ eventId }: { readonly eventId: string }): ReactNode => {
  const { project } = useConsole()
  const { data, error } = useQuery(explanationsQuery(project.id, eventId))
  if (data === undefined)
    return error === null ? (
      <Skeleton label="Loading triggered agents …" />
    ) : (
      <Failure error={error} triesAgain />
    )
  const all = data.items.toSorted((a, b) => outcomes.indexOf(a.outcome) - outcomes.indexOf(b.outcome))
  return (
    <>
      <p
        role="status"
        data-testid="woken"
        data-woken={all.filter(({ outcome }) => outcome === "woke").length}
        className="mb-3 text-sm font-medium"
      >
        {headline(all)}
      </p>
      <ul aria-label="Agents and this event" className="grid gap-2">
        {all.map((one) => (
          <li
            key={one.agentId}
            data-outcome={one.outcome}
            className="min-w-0 rounded-xl border border-line px-3.5 py-2.5 text-sm"
          >
            <p className="flex flex-wrap items-center gap-2">
              <Link
                to="/agents/$agentId"
                params={{ agentId: one.agentId }}
                className="font-medium underline-offset-2 hover:underline"
              >
                <Visible text={one.agentName} />
              </Link>
              <span className={`rounded-full px-2 text-2xs leading-5 font-medium ${colours[one.outcome]}`}>
                {words[one.outcome]}
              </span>
              {one.run !== null && (
                <Link
                  to="/runs/$runId"
                  params={{ runId: one.run.id }}
                  className="inline-flex items-center gap-1.5 text-xs text-leaf underline-offset-2 hover:underline"
                >
                  Run <RunStatusBadge status={one.run.status} />
                </Link>
              )}
            </p>
            <p className="mt-1 text-xs text-ink-soft">
              <Visible text={one.reason} />
            </p>
          </li>
        ))}
      </ul>
    </>
  )
}

const headline = (all: ReadonlyArray<Explanation>): string => {
  if (all.length === 0) return "The project has no agents that it could trigger."
  const woken = all.filter(({ outcome }) => outcome === "woke").length
  const waiting = all.filter(({ outcome }) => outcome === "waiting").length
  const others = all.length - woken - waiting
  return [
    woken === 0 ? "No agents triggered." : `${countText(woken, "agent")} triggered.`,
    waiting === 0 ? "" : `${countText(waiting, "agent")} waiting.`,
    others === 0 ? "" : `${countText(others, "agent")} not triggered; see the reasons.`
  ]
    .filter((part) => part !== "")
    .join(" ")
}
