/**
 * Events that no agent could handle: they wait for nobody here, and nothing comes of them unless somebody looks.
 */
import type { HealthFinding } from "@tropism/domain/health"
import { useQuery } from "@tanstack/react-query"
import { Link } from "@tanstack/react-router"
import type { ReactNode } from "react"
import { limits } from "../limits.ts"
import { CautionIcon } from "../parts/icons.tsx"
import { Visible } from "../parts/visible.tsx"
import { healthQuery } from "../server/health-queries.ts"

export const LeftAside = ({ projectId }: { readonly projectId: string }): ReactNode => {
  const { data } = useQuery({
    ...healthQuery(projectId),
    refetchInterval: limits.longListRefreshIntervalMs
  })
  const findings = (data?.findings ?? []).filter(
    ({ state, subject }) => state !== "ok" && subject?.type === "deadLetters"
  )
  if (findings.length === 0) return null
  return (
    <ul aria-label="Dead letters" className="mb-6 grid gap-2">
      {findings.map((finding) => (
        <li
          key={`${finding.subject?.id} ${finding.detail}`}
          className="flex items-start gap-2.5 rounded-xl border border-caution-line bg-caution px-4 py-3 text-sm text-caution-ink"
        >
          <CautionIcon className="mt-1" />
          <p className="min-w-0 [overflow-wrap:anywhere]">
            <Visible text={finding.detail} /> <LettersLink finding={finding} />
          </p>
        </li>
      ))}
    </ul>
  )
}

const LettersLink = ({ finding }: { readonly finding: HealthFinding }): ReactNode => {
  const agentId = finding.subject?.id ?? null
  return agentId === null ? null : (
    <Link
      to="/reactions/$agentId"
      params={{ agentId }}
      search={{ tab: "dead" }}
      className="rounded font-medium underline underline-offset-2"
    >
      Open dead letters
    </Link>
  )
}
