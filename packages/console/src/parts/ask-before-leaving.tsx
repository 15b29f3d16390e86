/**
 * Asks whoever leaves a page, by whatever way, before what they wrote there and did not save is lost.
 */
import { useBlocker } from "@tanstack/react-router"
import type { ReactNode } from "react"
import { ConfirmDialog } from "./confirm-dialog.tsx"

interface AskBeforeLeavingProps {
  /** Also of what is on its way: what is refused still stands in its form. */
  readonly isUnsaved: boolean
  /** Whether what was written stays where it is at another address of the project; it does not, unless given. */
  readonly staysAt?: (pathname: string) => boolean
}

export const AskBeforeLeaving = ({ isUnsaved, staysAt }: AskBeforeLeavingProps): ReactNode => {
  const blocker = useBlocker({
    shouldBlockFn: ({ current, next }) =>
      isUnsaved &&
      !(current.search.project === next.search.project && staysAt !== undefined && staysAt(next.pathname)),
    enableBeforeUnload: () => isUnsaved,
    withResolver: true
  })
  return (
    <ConfirmDialog
      isOpen={blocker.status === "blocked"}
      title="Leave without saving?"
      verb="Leave"
      staying="Stay"
      onConfirm={() => blocker.proceed?.()}
      onClose={() => blocker.reset?.()}
    >
      Unsaved changes will be lost.
    </ConfirmDialog>
  )
}
