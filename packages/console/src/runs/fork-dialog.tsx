/**
 * A context whose log is this run's up to an event, and what is said in it first.
 */
import type { Context } from "@tropism/api/contexts-api"
import type { Run } from "@tropism/domain/run"
import { Effect } from "effect"
import { type ReactNode, useState } from "react"
import { useConsole } from "../frame/console-context.tsx"
import { Button } from "../parts/button.tsx"
import { Command } from "../parts/command.tsx"
import { DialogFrame } from "../parts/dialog-frame.tsx"
import { FormDialog } from "../parts/form-dialog.tsx"
import { TextField } from "../parts/form-fields.tsx"
import { call, inProject } from "../server/request.ts"
import { useAct } from "../server/use-act.ts"

interface ForkDialogProps {
  readonly run: Run
  /** The number of the last event that the fork shares. */
  readonly at: number
  readonly onClose: () => void
}

export const ForkDialog = ({ run, at, onClose }: ForkDialogProps): ReactNode => {
  const { project } = useConsole()
  const [name, setName] = useState(`${run.agentName}-from-${at}`)
  const [message, setMessage] = useState("")
  const [made, setMade] = useState<string>()
  const contextPath = (context: string, rest: string): string =>
    inProject(project.id, `contexts/${encodeURIComponent(context)}/${rest}`)
  const fork = useAct({
    act: ({ wanted, said }: { readonly wanted: string; readonly said: string }, key) =>
      Effect.gen(function* () {
        const body = { name: wanted, at }
        yield* call<Context>(contextPath(run.contextName, "fork"), {
          method: "POST",
          body,
          idempotencyKey: key
        })
        if (said === "") return
        yield* call<unknown>(contextPath(wanted, "events"), {
          method: "POST",
          body: { type: "UserMessageEvent", content: said },
          idempotencyKey: `${key}-said`
        })
      }),
    touches: [[project.id]],
    onDone: (_, { wanted }) => setMade(wanted)
  })
  if (made !== undefined)
    return (
      <DialogFrame isOpen title={`Fork after event ${at}`} onClose={onClose} returnsFocus>
        <div className="mt-4 grid gap-4 text-sm">
          <p>The fork is there. What was shared is not copied, and each goes on by itself.</p>
          <Command text={`npx tropism contexts show ${made}`} />
          <p className="text-right">
            <Button weight="primary" onClick={onClose} data-first-focus>
              Done
            </Button>
          </p>
        </div>
      </DialogFrame>
    )
  return (
    <FormDialog
      title={`Fork after event ${at}`}
      verb="Fork"
      isBusy={fork.isBusy}
      isReady={name !== ""}
      error={fork.error}
      pointers={["/name", "/content"]}
      onSubmit={() => fork.run({ wanted: name, said: message })}
      onClose={onClose}
    >
      <TextField
        label="Name of the new context"
        pointer="/name"
        error={fork.error}
        value={name}
        onChange={setName}
        hasFirstFocus
      />
      <TextField
        label="Say in it"
        hint="The agent goes on from there; empty says nothing yet"
        pointer="/content"
        error={fork.error}
        value={message}
        onChange={setMessage}
        lines={3}
      />
    </FormDialog>
  )
}
