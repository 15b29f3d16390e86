/**
 * What can be done with all selected suggestions at once; there only while any is selected.
 */
import type { ReactNode } from "react"
import { Button } from "../parts/button.tsx"

interface SelectionBarProps {
  readonly selectedCount: number
  /** How many of them may only be rejected. */
  readonly deniedCount: number
  /** How many decisions are still under way. */
  readonly decidingCount: number
  readonly onApprove: () => void
  readonly onReject: () => void
  readonly onClear: () => void
}

export const SelectionBar = (props: SelectionBarProps): ReactNode => {
  const { selectedCount, deniedCount, decidingCount, onApprove, onReject, onClear } = props
  if (selectedCount === 0) return null
  const isBusy = decidingCount > 0
  const approvable = selectedCount - deniedCount
  return (
    <div
      role="region"
      aria-label="Selected suggestions"
      data-bottom-bar
      className="enter fixed inset-x-3 bottom-3 z-30 mx-auto flex max-w-xl flex-wrap items-center gap-2 rounded-2xl border border-line-strong bg-surface py-2.5 pr-2.5 pl-5 shadow-raised sm:bottom-5"
    >
      <p aria-live="polite" className="grow text-sm font-medium">
        {isBusy
          ? `Saving… ${decidingCount} left`
          : `${selectedCount} selected${deniedCount === 0 ? "" : `, ${deniedCount} can only be rejected`}`}
      </p>
      <Button weight="quiet" size="small" disabled={isBusy} onClick={onClear}>
        Clear
      </Button>
      <Button
        disabled={isBusy}
        onClick={onReject}
        aria-label={`Reject the ${selectedCount} selected suggestions`}
      >
        Reject
      </Button>
      <Button
        weight="primary"
        disabled={isBusy || approvable === 0}
        onClick={onApprove}
        aria-label={`Approve ${approvable} of the ${selectedCount} selected suggestions`}
      >
        Approve {approvable}
      </Button>
    </div>
  )
}
