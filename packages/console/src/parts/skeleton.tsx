/**
 * What stands where rows will be while they are read.
 */
import type { ReactNode } from "react"

export const Skeleton = ({ label = "Loading …" }: { readonly label?: string }): ReactNode => (
  <div role="status" data-testid="reading" className="grid gap-3">
    <span className="sr-only">{label}</span>
    {[0, 1, 2].map((place) => (
      <div key={place} aria-hidden="true" className="pulse-dot rounded-xl border border-line bg-surface p-4">
        <div className="h-4 w-2/5 rounded bg-line" />
        <div className="mt-2.5 h-3 w-1/4 rounded bg-line" />
      </div>
    ))}
  </div>
)
