/**
 * Asks whoever leaves a page, by whatever way, before what they wrote there and did not save is lost.
 */
import { useBlocker } from "@tanstack/react-router"
import type { ReactNode } from "react"
import { ConfirmDialog } from "./confirm-dialog.tsx"

export const AskBeforeLeaving = ({ isUnsaved }: { readonly isUnsaved: boolean }): ReactNode => {
  const blocker = useBlocker({
    shouldBlockFn: () => isUnsaved,
    enableBeforeUnload: () => isUnsaved,
    withResolver: true
  })
  return (
    <ConfirmDialog
      isOpen={blocker.status === "blocked"}
      title="Leave without saving?"
      verb="Leave"
      staying="Stay here"
      onConfirm={() => blocker.proceed?.()}
      onClose={() => blocker.reset?.()}
    >
      What you changed here is lost then.
    </ConfirmDialog>
  )
}
