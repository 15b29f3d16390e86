/**
 * What a person may do with a run: end it, or let it go on.
 */
import { isResumable, type Run } from "@tropism/domain/run"
import { type ReactNode, useState } from "react"
import { useConsole } from "../frame/console-context.tsx"
import { Button } from "../parts/button.tsx"
import { ConfirmDialog } from "../parts/confirm-dialog.tsx"
import { Failure } from "../parts/failure.tsx"
import { runQuery } from "../server/run-queries.ts"
import { call, inProject } from "../server/request.ts"
import { useAct } from "../server/use-act.ts"
import { ResumeDialog } from "./resume-dialog.tsx"
import { canCancel } from "./run-words.ts"

interface Wish {
  readonly verb: "cancel" | "resume"
  /** What a run is resumed with. */
  readonly body?: Readonly<Record<string, unknown>>
}

export const RunActions = ({ run }: { readonly run: Run }): ReactNode => {
  const { project, canAnswer } = useConsole()
  const [asked, setAsked] = useState<Wish["verb"]>()
  const act = useAct({
    what: ({ verb }: Wish) => (verb === "cancel" ? "Cancel run" : "Resume run"),
    act: ({ verb, body = {} }: Wish, idempotencyKey) =>
      call<Run>(inProject(project.id, `runs/${encodeURIComponent(run.id)}/${verb}`), {
        method: "POST",
        ...(verb === "resume" && { body }),
        idempotencyKey
      }),
    touches: [runQuery(project.id, run.id).queryKey],
    onDone: () => setAsked(undefined)
  })
  const { isBusy, error, given } = act
  const ask = (verb: Wish["verb"]): void => {
    act.forget()
    setAsked(verb)
  }
  const close = (): void => setAsked(undefined)
  const mayResume = run.status === "paused" && run.pauseReason !== null && isResumable(run.pauseReason)
  // A run whose time was up has it anew; what else is used up stays so until somebody gives more.
  const needsMore = run.pauseReason !== "timeout"
  const goOn = (): void => act.run({ verb: "resume" })
  if (!canCancel(run)) return null
  if (!canAnswer)
    return (
      <span data-testid="editors-only" className="text-xs text-ink-faint">
        Only editors can cancel and resume runs.
      </span>
    )
  return (
    <>
      {mayResume && (
        <Button weight="primary" disabled={isBusy} onClick={needsMore ? () => ask("resume") : goOn}>
          {needsMore ? "Resume …" : "Resume"}
        </Button>
      )}
      <Button onClick={() => ask("cancel")}>Cancel run</Button>
      {error !== null && given?.verb === "resume" && asked === undefined && (
        <div className="order-last basis-full">
          <Failure error={error} />
        </div>
      )}
      {asked === "resume" && (
        <ResumeDialog
          run={run}
          isBusy={isBusy}
          error={given?.verb === "resume" ? error : null}
          onResume={(body) => act.run({ verb: "resume", body })}
          onClose={close}
        />
      )}
      <ConfirmDialog
        isOpen={asked === "cancel"}
        title="Cancel this run?"
        verb="Cancel run"
        staying="Keep running"
        isBusy={isBusy}
        error={given?.verb === "cancel" ? error : null}
        onConfirm={() => act.run({ verb: "cancel" })}
        onClose={close}
      >
        The run ends and cannot be resumed. Its changes so far are kept.
      </ConfirmDialog>
    </>
  )
}
