/**
 * Asks why before rejecting: the reason is kept with the suggestion.
 *
 * What somebody else decides meanwhile is said, and only the rest is rejected.
 */
import type { SuggestionTask } from "@tropism/domain/task"
import { type ReactNode, useId, useState } from "react"
import { limits } from "../limits.ts"
import { Button } from "../parts/button.tsx"
import { DialogFrame } from "../parts/dialog-frame.tsx"
import { Visible } from "../parts/visible.tsx"
import { OvertakenNotice } from "./overtaken-notice.tsx"
import { useOvertaken } from "./use-overtaken.ts"

interface RejectDialogProps {
  readonly projectId: string
  /** What would be rejected; the dialog is open while there is any. */
  readonly tasks: ReadonlyArray<SuggestionTask>
  /** What waits as the page knows it. */
  readonly listed: ReadonlyArray<SuggestionTask>
  /** What was written before and not taken. */
  readonly reason: string
  readonly onReject: (tasks: ReadonlyArray<SuggestionTask>, reason: string) => void
  readonly onClose: () => void
  /** The dialog is gone. */
  readonly onClosed: () => void
}

export const RejectDialog = ({
  projectId,
  tasks,
  listed,
  reason,
  onReject,
  onClose,
  onClosed
}: RejectDialogProps): ReactNode => {
  const { left, sentences } = useOvertaken(projectId, tasks, listed)
  const [first] = tasks
  const [only = first] = left
  const count = left.length === 0 ? tasks.length : left.length
  const title = count === 1 && only ? `Reject #${only.number}?` : `Reject ${count} suggestions?`
  return (
    <DialogFrame isOpen={tasks.length > 0} title={title} onClose={onClose} onClosed={onClosed}>
      {only && (
        <p className="mt-1 text-sm text-ink-soft">
          {count === 1 ? <Visible text={only.title} /> : "The reason is saved with each of them."}
        </p>
      )}
      <div className="mt-3">
        <OvertakenNotice sentences={sentences} />
      </div>
      <ReasonForm
        initial={reason}
        hasAny={left.length > 0}
        onSubmit={(written) => onReject(left, written)}
        onClose={onClose}
      />
    </DialogFrame>
  )
}

interface ReasonFormProps {
  readonly initial: string
  /** Whether anything is left to reject. */
  readonly hasAny: boolean
  readonly onSubmit: (reason: string) => void
  readonly onClose: () => void
}

const ReasonForm = ({ initial, hasAny, onSubmit, onClose }: ReasonFormProps): ReactNode => {
  const [reason, setReason] = useState(initial)
  const fieldId = useId()
  const hintId = useId()
  return (
    <form
      onSubmit={(event) => {
        event.preventDefault()
        if (hasAny) onSubmit(reason.trim())
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
        Visible to reviewers and to the agent.
      </p>
      <div className="mt-5 flex justify-end gap-2">
        {hasAny ? (
          <>
            <Button weight="quiet" onClick={onClose}>
              Cancel
            </Button>
            <Button type="submit" weight="primary">
              Reject
            </Button>
          </>
        ) : (
          <Button onClick={onClose}>Close</Button>
        )}
      </div>
    </form>
  )
}
