/**
 * Rejects everything that an agent suggests and that waits, in one request: also what is not on the page.
 */
import { type ReactNode, useState } from "react"
import { limits } from "../limits.ts"
import { FormDialog } from "../parts/form-dialog.tsx"
import { TextField } from "../parts/form-fields.tsx"
import { useWrite } from "../server/use-write.ts"
import { visibleText } from "../words/visible-text.ts"

interface RejectAllProps {
  readonly agentId: string
  readonly agentName: string
}

export const RejectAll = ({ agentId, agentName }: RejectAllProps): ReactNode => {
  const [isAsking, setIsAsking] = useState(false)
  return (
    <>
      <button
        type="button"
        data-testid="reject-all"
        onClick={() => setIsAsking(true)}
        className="shrink-0 rounded text-xs text-ink-soft underline-offset-2 hover:text-ink hover:underline"
      >
        Reject all of {visibleText(agentName)}
      </button>
      {isAsking && (
        <RejectAllDialog agentId={agentId} agentName={agentName} onClose={() => setIsAsking(false)} />
      )}
    </>
  )
}

const RejectAllDialog = ({
  agentId,
  agentName,
  onClose
}: RejectAllProps & { readonly onClose: () => void }): ReactNode => {
  const [reason, setReason] = useState("")
  const write = useWrite(`Reject all of ${visibleText(agentName)}`, onClose)
  return (
    <FormDialog
      title={`Reject all suggestions of ${visibleText(agentName)}?`}
      verb="Reject all"
      isBusy={write.isBusy}
      error={write.error}
      pointers={["/reason"]}
      onSubmit={() =>
        write.run({
          path: `agents/${encodeURIComponent(agentId)}/suggestions/reject`,
          method: "POST",
          body: { reason: reason.trim() === "" ? null : reason.trim().slice(0, limits.maxReasonCharacters) }
        })
      }
      onClose={onClose}
    >
      <TextField
        label="Reason"
        hint="Rejects all pending suggestions of this agent, including those not on this page."
        pointer="/reason"
        error={write.error}
        value={reason}
        onChange={setReason}
        lines={4}
      />
    </FormDialog>
  )
}
