/**
 * Ends a dry run that is under way, so that another one may begin; nothing where it is over.
 */
import { type Backtest, backtestTransitions } from "@tropism/domain/backtest"
import { type ReactNode, useState } from "react"
import { Button } from "../parts/button.tsx"
import { ConfirmDialog } from "../parts/confirm-dialog.tsx"
import { agentPath } from "../server/agent-queries.ts"
import { useWrite } from "../server/use-write.ts"

export const CancelDryRun = ({ backtest }: { readonly backtest: Backtest }): ReactNode => {
  const { agentId, id, status } = backtest
  const [isAsked, setIsAsked] = useState(false)
  const cancel = useWrite<Backtest>("Cancel backtest", () => setIsAsked(false))
  if (!backtestTransitions[status].includes("cancelled")) return null
  return (
    <>
      {" "}
      <Button size="small" onClick={() => setIsAsked(true)}>
        Cancel
      </Button>
      <ConfirmDialog
        isOpen={isAsked}
        title="Cancel this backtest?"
        verb="Cancel backtest"
        staying="Keep running"
        isBusy={cancel.isBusy}
        error={cancel.error}
        onConfirm={() =>
          cancel.run({
            path: agentPath(agentId, `/backtests/${encodeURIComponent(id)}/cancel`),
            method: "POST"
          })
        }
        onClose={() => setIsAsked(false)}
      >
        Its open runs are cancelled and no further events are run. Results so far are kept.
      </ConfirmDialog>
    </>
  )
}
