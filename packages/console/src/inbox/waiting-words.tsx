/**
 * For whom and until when a task waits, as words on its card, with the button that changes it.
 */
import { isSuggestion, type QuestionTask, type SuggestionTask } from "@tropism/domain/task"
import { type ReactNode, useState } from "react"
import { useConsole } from "../frame/console-context.tsx"
import { ShownTime, useNow } from "../parts/time-ago.tsx"
import { Visible } from "../parts/visible.tsx"
import { durationText } from "../words/durations.ts"
import { visibleText } from "../words/visible-text.ts"
import { AssignDialog } from "./assign-dialog.tsx"

export const WaitingWords = ({ task }: { readonly task: SuggestionTask | QuestionTask }): ReactNode => {
  const { canAnswer, principal } = useConsole()
  const now = useNow()
  const [isAssigning, setIsAssigning] = useState(false)
  const { assignee } = task
  const expiresAt = isSuggestion(task) ? task.expiresAt : null
  return (
    <>
      {assignee !== null && (
        <span data-assignee={assignee} className="text-ink-soft">
          for {assignee === principal.userId ? "you" : <Visible text={assignee} />}
        </span>
      )}
      {expiresAt !== null && (
        <ShownTime instant={expiresAt} className="text-ink-soft">
          {Date.parse(expiresAt) > now
            ? `expires in ${durationText(Date.parse(expiresAt) - now)}`
            : "expires now"}
        </ShownTime>
      )}
      {canAnswer && (
        <button
          type="button"
          onClick={() => setIsAssigning(true)}
          className="rounded text-ink-soft underline-offset-2 hover:text-ink hover:underline"
        >
          Assign
          <span className="sr-only"> {visibleText(task.title)}</span>
        </button>
      )}
      {isAssigning && <AssignDialog task={task} onClose={() => setIsAssigning(false)} />}
    </>
  )
}
