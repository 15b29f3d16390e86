/**
 * Asks why before rejecting: the reason is kept with the suggestion.
 */
import type { SuggestionTask } from "@tropism/domain/task"
import { Dialog } from "radix-ui"
import { type ReactNode, useId, useState } from "react"
import { limits } from "../limits.ts"
import { Button } from "../parts/button.tsx"
import { DialogFrame } from "../parts/dialog-frame.tsx"
import { Visible } from "../parts/visible.tsx"

interface RejectDialogProps {
  /** What would be rejected; the dialog is open while there is any. */
  readonly tasks: ReadonlyArray<SuggestionTask>
  /** What was written before and not taken. */
  readonly reason: string
  readonly onReject: (tasks: ReadonlyArray<SuggestionTask>, reason: string) => void
  readonly onClose: () => void
  /** The dialog is gone. */
  readonly onClosed: () => void
}

export const RejectDialog = ({
  tasks,
  reason,
  onReject,
  onClose,
  onClosed
}: RejectDialogProps): ReactNode => {
  const [only] = tasks
  const title = tasks.length === 1 && only ? `Reject #${only.number}?` : `Reject ${tasks.length} suggestions?`
  return (
    <DialogFrame isOpen={tasks.length > 0} title={title} onClose={onClose} onClosed={onClosed}>
      {only && (
        <p className="mt-1 text-sm text-ink-soft">
          {tasks.length === 1 ? <Visible text={only.title} /> : "The same reason is kept with each of them."}
        </p>
      )}
      <ReasonForm initial={reason} onSubmit={(written) => onReject(tasks, written)} />
    </DialogFrame>
  )
}

interface ReasonFormProps {
  readonly initial: string
  readonly onSubmit: (reason: string) => void
}

const ReasonForm = ({ initial, onSubmit }: ReasonFormProps): ReactNode => {
  const [reason, setReason] = useState(initial)
  const fieldId = useId()
  const hintId = useId()
  return (
    <form
      onSubmit={(event) => {
        event.preventDefault()
        onSubmit(reason.trim())
      }}
      className="mt-4"
    >
      <label htmlFor={fieldId} className="text-sm font-medium">
        Reason <span className="font-normal text-ink-faint">(optional)</span>
      </label>
      <textarea
        id={fieldId}
        data-first-focus
        aria-describedby={hintId}
        rows={4}
        maxLength={limits.maxReasonCharacters}
        value={reason}
        onChange={(event) => setReason(event.target.value)}
        onKeyDown={(event) => {
          if (event.key === "Enter" && (event.ctrlKey || event.metaKey))
            event.currentTarget.form?.requestSubmit()
        }}
        placeholder="What is wrong with it?"
        className="mt-1.5 block w-full resize-y rounded-lg border border-line-strong bg-canvas px-3 py-2 text-sm placeholder:text-ink-faint"
      />
      <p id={hintId} className="mt-1.5 text-xs text-ink-faint">
        Kept with the suggestion for everyone who looks at it later.
      </p>
      <div className="mt-5 flex justify-end gap-2">
        <Dialog.Close asChild>
          <Button weight="quiet">Cancel</Button>
        </Dialog.Close>
        <Button type="submit" weight="primary">
          Reject
        </Button>
      </div>
    </form>
  )
}
