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
import { ResumeDialog } from "./resume-dialog.tsx"
import { canCancel } from "./run-words.ts"

interface Act {
  readonly verb: "cancel" | "resume"
  /** What a run is resumed with. */
  readonly body?: Readonly<Record<string, unknown>>
}

export const RunActions = ({ run }: { readonly run: Run }): ReactNode => {
  const { project, canAnswer } = useConsole()
  const queryClient = useQueryClient()
  const [asked, setAsked] = useState<Act["verb"]>()
  const { mutate, isPending, error, variables, reset } = useMutation({
    mutationFn: ({ verb, body = {} }: Act) =>
      Effect.runPromise(
        call<Run>(inProject(project.id, `runs/${encodeURIComponent(run.id)}/${verb}`), {
          method: "POST",
          ...(verb === "resume" && { body })
        })
      ),
    onSuccess: (after) => {
      queryClient.setQueryData(runQuery(project.id, run.id).queryKey, after)
      setAsked(undefined)
    }
  })
  const ask = (verb: Act["verb"]): void => {
    reset()
    setAsked(verb)
  }
  const close = (): void => setAsked(undefined)
  const mayResume = run.status === "paused" && run.pauseReason !== null && isResumable(run.pauseReason)
  // A run whose time was up has it anew; what else is used up stays so until somebody gives more.
  const needsMore = run.pauseReason !== "timeout"
  const goOn = (): void => mutate({ verb: "resume" })
  if (!canCancel(run)) return null
  if (!canAnswer) return <span className="text-xs text-ink-faint">Editors may cancel and resume runs.</span>
  return (
    <>
      {mayResume && (
        <Button weight="primary" disabled={isPending} onClick={needsMore ? () => ask("resume") : goOn}>
          {needsMore ? "Resume …" : "Resume"}
        </Button>
      )}
      <Button onClick={() => ask("cancel")}>Cancel run</Button>
      {error !== null && variables?.verb === "resume" && asked === undefined && (
        <div className="order-last basis-full">
          <Failure error={error} />
        </div>
      )}
      {asked === "resume" && (
        <ResumeDialog
          run={run}
          isBusy={isPending}
          error={variables?.verb === "resume" ? error : null}
          onResume={(body) => mutate({ verb: "resume", body })}
          onClose={close}
        />
      )}
      <ConfirmDialog
        isOpen={asked === "cancel"}
        title="Cancel this run?"
        verb="Cancel the run"
        staying="Let it run"
        isBusy={isPending}
        error={variables?.verb === "cancel" ? error : null}
        onConfirm={() => mutate({ verb: "cancel" })}
        onClose={close}
      >
        It ends where it is and never goes on. What it has done already stays.
      </ConfirmDialog>
    </>
  )
}
