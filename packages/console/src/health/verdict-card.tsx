/**
 * The verdict in a sentence, and the one thing to do next.
 */
import type { HealthFinding, ProjectHealth } from "@tropism/domain/health"
import { Link } from "@tanstack/react-router"
import type { ReactNode } from "react"
import { Command } from "../parts/command.tsx"
import { ArrowIcon } from "../parts/icons.tsx"
import { Said } from "./said.tsx"
import { HealthSign, healthColours } from "./health-sign.tsx"
import { linkOf } from "./health-links.ts"
import { Visible } from "../parts/visible.tsx"

export const VerdictCard = ({ health }: { readonly health: ProjectHealth }): ReactNode => {
  const said = health.nextStep?.said ?? null
  return (
    <section
      aria-label="Verdict"
      data-state={health.state}
      data-part={health.nextStep?.part}
      data-subject={health.nextStep?.subject?.type}
      className="mb-8 rounded-2xl border border-line bg-surface p-5 shadow-card sm:p-6"
    >
      <div className="flex items-start gap-3.5" aria-live="polite">
        <HealthSign state={health.state} />
        <h2 className="min-w-0 text-lg leading-6 font-semibold text-pretty [overflow-wrap:anywhere]">
          <Visible text={health.verdict} />
        </h2>
      </div>
      {said !== null && (
        <div className="mt-3 sm:pl-9.5">
          <Said text={said} />
        </div>
      )}
      {health.nextStep !== null && <NextStep step={health.nextStep} />}
    </section>
  )
}

const NextStep = ({ step }: { readonly step: HealthFinding }): ReactNode => {
  const link = step.subject === null ? undefined : linkOf(step.subject)
  return (
    <div className={`mt-5 rounded-xl border px-4 py-4 ${healthColours[step.state]}`}>
      <h3 className="text-xs font-semibold">Next step</h3>
      <p className="mt-1 text-sm text-pretty">{step.remedy}</p>
      <div className="mt-3 flex flex-wrap items-center gap-3">
        {link !== undefined && (
          <Link
            {...link.to}
            data-next-step
            className="inline-flex min-h-9 items-center gap-2 rounded-lg bg-leaf px-3.5 py-1.5 text-sm font-medium text-on-leaf hover:bg-leaf-strong"
          >
            <span className="min-w-0 [overflow-wrap:anywhere]">{link.words}</span>
            <ArrowIcon size="small" />
          </Link>
        )}
        {step.fix !== null && (
          <div className="min-w-0 text-ink">
            <Command text={`npx ${step.fix}`} />
          </div>
        )}
      </div>
    </div>
  )
}
