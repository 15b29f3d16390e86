/**
 * What the verdict rests on: every finding under its question.
 */
import type { HealthFinding, HealthPart } from "@tropism/domain/health"
import { Link } from "@tanstack/react-router"
import type { ReactNode } from "react"
import { Visible } from "../parts/visible.tsx"
import { linkOf } from "./health-links.ts"
import { HealthSign } from "./health-sign.tsx"
import { Said } from "./said.tsx"

const parts: ReadonlyArray<{ readonly part: HealthPart; readonly title: string; readonly asks: string }> = [
  { part: "flow", title: "Flow", asks: "Are events and tasks delivered?" },
  { part: "execution", title: "Execution", asks: "Do runs succeed?" },
  {
    part: "liveness",
    title: "Liveness",
    asks: "Are the server, models and MCP servers available?"
  }
]

export const Evidence = ({ findings }: { readonly findings: ReadonlyArray<HealthFinding> }): ReactNode => (
  <div className="grid gap-8 lg:grid-cols-3 lg:gap-6">
    {parts.map(({ part, title, asks }) => (
      <section key={part} aria-labelledby={`part-${part}`} className="min-w-0">
        <h2 id={`part-${part}`} className="text-base font-semibold">
          {title}
        </h2>
        <p className="text-xs text-ink-faint">{asks}</p>
        <ul className="mt-3 grid gap-3">
          {findings
            .filter((finding) => finding.part === part)
            .map((finding) => (
              <Row key={`${finding.check} ${finding.subject?.id} ${finding.detail}`} finding={finding} />
            ))}
        </ul>
      </section>
    ))}
  </div>
)

const Row = ({ finding }: { readonly finding: HealthFinding }): ReactNode => {
  const { detail, said, state, subject } = finding
  const link = subject === null ? undefined : linkOf(subject)
  return (
    <li className="flex items-start gap-3 rounded-xl border border-line bg-surface px-3.5 py-3 text-sm">
      <HealthSign state={state} />
      <div className="grid min-w-0 gap-1.5">
        <p className="text-pretty [overflow-wrap:anywhere]">
          <Visible text={detail} />
        </p>
        {said !== null && <Said text={said} />}
        {link !== undefined && (
          <Link
            {...link.to}
            className="justify-self-start text-xs font-medium [overflow-wrap:anywhere] text-leaf underline-offset-2 hover:underline"
          >
            {link.words}
          </Link>
        )}
      </div>
    </li>
  )
}
