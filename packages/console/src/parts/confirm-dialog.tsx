/**
 * Asks once before something that is hard to take back.
 */
import type { ReactNode } from "react"
import { Button } from "./button.tsx"
import { CloseButton, DialogFrame } from "./dialog-frame.tsx"
import { Failure } from "./failure.tsx"

interface ConfirmDialogProps {
  readonly isOpen: boolean
  /** A question: `Delete the agent tidy?` */
  readonly title: string
  /** What will be so afterwards. */
  readonly children: ReactNode
  /** The word on the button, a verb. */
  readonly verb: string
  /** What staying means, where it is more than to cancel: `Keep it`. */
  readonly staying?: string
  readonly isBusy?: boolean
  /** False while what is asked is no longer so. */
  readonly isReady?: boolean
  /** What the attempt failed with, if it did. */
  readonly error?: unknown
  readonly onConfirm: () => void
  readonly onClose: () => void
}

/** **Gotchas** While it is busy the button is dead, so a double click does one thing, and it stays open. */
export const ConfirmDialog = (props: ConfirmDialogProps): ReactNode => {
  const {
    isOpen,
    title,
    children,
    verb,
    staying = "Cancel",
    isBusy = false,
    isReady = true,
    error,
    onConfirm,
    onClose
  } = props
  return (
    <DialogFrame isOpen={isOpen} title={title} onClose={onClose} isBusy={isBusy} returnsFocus>
      <div className="mt-3 text-sm text-ink-soft">{children}</div>
      {error !== undefined && error !== null && (
        <div className="mt-4">
          <Failure error={error} />
        </div>
      )}
      <div className="mt-6 flex justify-end gap-2">
        <CloseButton data-first-focus>{staying}</CloseButton>
        <Button data-testid="confirm" weight="primary" disabled={isBusy || !isReady} onClick={onConfirm}>
          {verb}
        </Button>
      </div>
    </DialogFrame>
  )
}
