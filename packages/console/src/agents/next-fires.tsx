/**
 * A schedule in words, and when it fires next by the clock of its zone; what is no schedule is said.
 */
import { useQuery } from "@tanstack/react-query"
import type { ReactNode } from "react"
import { useConsole } from "../frame/console-context.tsx"
import { ShownTime, useNow } from "../parts/time-ago.tsx"
import { Visible } from "../parts/visible.tsx"
import { firesQuery } from "../server/agent-queries.ts"
import { failureCode, failureSentence } from "../server/problem.ts"
import { wallClockText } from "../words/local-time.ts"
import { cronText } from "./agent-words.ts"

interface NextFiresProps {
  readonly cron: string
  readonly zone: string
}

export const NextFires = ({ cron, zone }: NextFiresProps): ReactNode => {
  const { project } = useConsole()
  const now = useNow()
  const { data, error } = useQuery({ ...firesQuery(project.id, cron, zone), enabled: cron.trim() !== "" })
  if (error !== null)
    return (
      <p data-failure={failureCode(error)} className="text-sm text-removed-ink">
        {failureSentence(error)}
      </p>
    )
  return (
    <div className="text-sm">
      <p>{cronText(cron)}</p>
      <ol
        aria-label="Next scheduled runs"
        className="m-0 mt-1 list-none p-0 text-xs text-ink-soft tabular-nums"
      >
        {data?.fires.map(({ at, localTime }) => (
          <li key={at}>
            <ShownTime instant={at}>{wallClockText(localTime, now)}</ShownTime> in{" "}
            <Visible text={zone.trim() === "" ? "UTC" : zone} />
          </li>
        ))}
      </ol>
    </div>
  )
}
