/**
 * Taking back what agents did: a plan is made, and a person approves it like any other task.
 */
import type { UndoTask } from "@tropism/domain/task"
import { useNavigate } from "@tanstack/react-router"
import { type ReactNode, useState } from "react"
import { useConsole } from "../frame/console-context.tsx"
import { Button } from "../parts/button.tsx"
import { ConfirmDialog } from "../parts/confirm-dialog.tsx"
import { useWrite } from "../server/use-write.ts"

interface UndoButtonProps {
  /** The address behind the project's. */
  readonly path: string
  /** What stands on the button. */
  readonly word: string
  /** Why there is nothing to undo, in a sentence; it stands in the button's place. */
  readonly nothing?: string | undefined
}

export const UndoButton = ({ path, word, nothing }: UndoButtonProps): ReactNode => {
  const { canTakeBack } = useConsole()
  const navigate = useNavigate()
  const [isAsking, setIsAsking] = useState(false)
  const { run, isBusy, error, forget } = useWrite<UndoTask>("Plan undo", ({ id }) =>
    navigate({ to: "/tasks/$taskId", params: { taskId: id } })
  )
  if (nothing !== undefined)
    return (
      <span data-testid="nothing-to-undo" className="text-xs text-ink-faint">
        {nothing}
      </span>
    )
  if (!canTakeBack) return <span className="text-xs text-ink-faint">Only reviewers can undo it.</span>
  return (
    <>
      <Button
        onClick={() => {
          forget()
          setIsAsking(true)
        }}
      >
        {word}
      </Button>
      <ConfirmDialog
        isOpen={isAsking}
        title="Plan to undo the agents' changes?"
        verb="Plan undo"
        isBusy={isBusy}
        error={error}
        onConfirm={() => run({ path, method: "POST" })}
        onClose={() => setIsAsking(false)}
      >
        A task lists the outcome for each object. Nothing changes until someone approves it, and later changes
        by people are kept.
      </ConfirmDialog>
    </>
  )
}
