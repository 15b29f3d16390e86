/**
 * A failure as its sentence, where it arose.
 */
import type { ReactNode } from "react"
import { failureCode, failureSentence, isRefused } from "../server/problem.ts"
import { usePlaceNames } from "./field-labels.tsx"
import { CautionIcon } from "./icons.tsx"

interface FailureProps {
  readonly error: unknown
  /** Whether what was read before is still on the page. */
  readonly hasOlder?: boolean
  /** Whether the page tries again by itself. */
  readonly triesAgain?: boolean
}

export const Failure = ({ error, hasOlder = false, triesAgain = false }: FailureProps): ReactNode => {
  const nameOf = usePlaceNames()
  return (
    <div
      role="alert"
      data-failure={failureCode(error)}
      data-has-older={hasOlder || undefined}
      className="mb-6 flex items-start gap-2.5 rounded-xl border border-caution-line bg-caution px-4 py-3 text-sm text-caution-ink"
    >
      <CautionIcon className="mt-1" />
      <p className="min-w-0 [overflow-wrap:anywhere]">
        {failureSentence(error, nameOf)}
        {hasOlder && " This data may be out of date."}
        {triesAgain && !isRefused(error) && " Retrying."}
      </p>
    </div>
  )
}
