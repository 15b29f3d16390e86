/**
 * What a person may do with a run: end it, or let it go on.
 */
import { isResumable, type Run } from "@tropism/domain/run"
import { useMutation, useQueryClient } from "@tanstack/react-query"
import { Effect } from "effect"
import { type ReactNode, useState } from "react"
import { useConsole } from "../frame/console-context.tsx"
import { Button } from "../parts/button.tsx"
import { ConfirmDialog } from "../parts/confirm-dialog.tsx"
import { Failure } from "../parts/failure.tsx"
import { runQuery } from "../server/run-queries.ts"
import { call, inProject } from "../server/request.ts"
import { canCancel } from "./run-words.ts"

type Verb = "cancel" | "resume"

export const RunActions = ({ run }: { readonly run: Run }): ReactNode => {
  const { project, canAnswer } = useConsole()
  const queryClient = useQueryClient()
  const [isAsking, setIsAsking] = useState(false)
  const { mutate, isPending, error, variables, reset } = useMutation({
    mutationFn: (verb: Verb) =>
      Effect.runPromise(
        call<Run>(inProject(project.id, `runs/${encodeURIComponent(run.id)}/${verb}`), {
          method: "POST",
          ...(verb === "resume" && { body: {} })
        })
      ),
    onSuccess: (after) => {
      queryClient.setQueryData(runQuery(project.id, run.id).queryKey, after)
      setIsAsking(false)
    }
  })
  const mayResume = run.status === "paused" && run.pauseReason !== null && isResumable(run.pauseReason)
  if (!canCancel(run)) return null
  if (!canAnswer) return <span className="text-xs text-ink-faint">Editors may cancel and resume runs.</span>
  return (
    <>
      {mayResume && (
        <Button weight="primary" disabled={isPending} onClick={() => mutate("resume")}>
          Resume
        </Button>
      )}
      <Button
        onClick={() => {
          reset()
          setIsAsking(true)
        }}
      >
        Cancel run
      </Button>
      {error !== null && variables === "resume" && <Failure error={error} />}
      <ConfirmDialog
        isOpen={isAsking}
        title="Cancel this run?"
        verb="Cancel the run"
        staying="Let it run"
        isBusy={isPending}
        error={variables === "cancel" ? error : null}
        onConfirm={() => mutate("cancel")}
        onClose={() => setIsAsking(false)}
      >
        It ends where it is and never goes on. What it has done already stays.
      </ConfirmDialog>
    </>
  )
}
