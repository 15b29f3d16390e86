/**
 * One verdict on the project, its evidence, and the next step.
 *
 * The server judges; the page asks again every few seconds, so that what is
 * mended shows by itself.
 */
import { useQuery } from "@tanstack/react-query"
import { useNavigate } from "@tanstack/react-router"
import type { ReactNode } from "react"
import { useConsole } from "../frame/console-context.tsx"
import { useKeys } from "../keys/use-keys.ts"
import { Failure } from "../parts/failure.tsx"
import { PageHeader } from "../parts/page-header.tsx"
import { Skeleton } from "../parts/skeleton.tsx"
import { healthQuery } from "../server/health-queries.ts"
import { Evidence } from "./evidence.tsx"
import { linkOf } from "./health-links.ts"
import { VerdictCard } from "./verdict-card.tsx"

export const HealthPage = (): ReactNode => {
  const { project } = useConsole()
  const { data, error } = useQuery(healthQuery(project.id))
  const navigate = useNavigate()
  const subject = data?.nextStep?.subject ?? null
  const next = subject === null ? undefined : linkOf(subject)
  useKeys("Health", [
    {
      key: "n",
      shown: ["N"],
      means: "Go to the next step",
      run: () => {
        if (next !== undefined) navigate(next.to)
      }
    }
  ])
  return (
    <>
      <PageHeader title="Health" lead="Project health and recommended fixes." />
      {error !== null && <Failure error={error} hasOlder={data !== undefined} triesAgain />}
      {data === undefined && error === null && <Skeleton label="Loading health …" />}
      {data !== undefined && (
        <>
          <VerdictCard health={data} />
          <Evidence findings={data.findings} />
        </>
      )}
    </>
  )
}
