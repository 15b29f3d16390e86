/**
 * How many runs are at work now, in the head of every page; nothing while none is.
 */
import { useQuery } from "@tanstack/react-query"
import { Link } from "@tanstack/react-router"
import type { ReactNode } from "react"
import { runsAtWorkQuery } from "../server/queries.ts"

export const RunsAtWork = ({ projectId }: { readonly projectId: string }): ReactNode => {
  const { data } = useQuery(runsAtWorkQuery(projectId))
  const count = data?.items.length ?? 0
  if (count === 0) return null
  const isMore = data?.nextCursor !== null
  const number = `${count}${isMore ? "+" : ""}`
  const words = `${count === 1 && !isMore ? "run" : "runs"} running`
  return (
    <Link
      to="/runs"
      search={{ status: "running" }}
      className="flex h-9 items-center gap-2 rounded-lg px-2 text-sm text-ink-soft hover:bg-sunken hover:text-ink"
    >
      <span aria-hidden="true" className="pulse-dot size-2 rounded-full bg-leaf" />
      <span className="font-semibold text-ink">{number}</span>{" "}
      <span className="sr-only md:not-sr-only">{words}</span>
    </Link>
  )
}
