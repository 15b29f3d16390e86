/**
 * How sure the agent says it is.
 */
import type { ReactNode } from "react"
import { confidenceText } from "../suggestion/change-words.ts"

export const Confidence = ({ value }: { readonly value: number | undefined }): ReactNode => {
  if (value === undefined) return <span className="text-ink-faint">No confidence given</span>
  const text = confidenceText(value)
  return (
    <span className="inline-flex items-center gap-2 text-ink-soft">
      <span aria-hidden="true" className="h-1.5 w-14 overflow-hidden rounded-full bg-line">
        <span className="block h-full rounded-full bg-ink-soft" style={{ width: text }} />
      </span>
      {text} confidence
    </span>
  )
}
