/**
 * A strip on every page while a kill switch is on: who stopped what, when and why, and where it is let go on.
 */
import { useQuery } from "@tanstack/react-query"
import { Link } from "@tanstack/react-router"
import type { ReactNode } from "react"
import { CautionIcon } from "../parts/icons.tsx"
import { TimeAgo } from "../parts/time-ago.tsx"
import { Visible } from "../parts/visible.tsx"
import { killSwitchQuery } from "../server/settings-queries.ts"

export const StopStrip = ({ projectId }: { readonly projectId: string }): ReactNode => {
  const { data } = useQuery(killSwitchQuery(projectId))
  const stop = data?.stopped ?? null
  if (stop === null) return null
  return (
    <section
      aria-label="Kill switch is on"
      data-testid="kill-switch"
      className="border-b border-caution-line bg-caution text-sm text-caution-ink"
    >
      <div className="mx-auto flex max-w-[100rem] flex-wrap items-baseline gap-x-4 gap-y-1 px-4 py-2.5 sm:px-6">
        <p role="status" className="min-w-0 grow basis-80 [overflow-wrap:anywhere]">
          <CautionIcon size="small" className="mr-2 inline" />
          <strong className="font-semibold">
            All agents of this {stop.scope} were stopped by <Visible text={stop.stoppedBy} />
          </strong>{" "}
          <TimeAgo instant={stop.stoppedAt} />:{" "}
          <q>
            <Visible text={stop.reason} />
          </q>
        </p>
        <Link
          to="/settings"
          search={{ tab: "project" }}
          className="font-medium whitespace-nowrap underline underline-offset-2"
        >
          Go to kill switch
        </Link>
      </div>
    </section>
  )
}
