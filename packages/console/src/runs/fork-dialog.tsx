/**
 * A context whose log is this run's up to an event, and what is said in it first.
 */
import type { Context } from "@tropism/api/contexts-api"
import type { Run } from "@tropism/domain/run"
import { type ReactNode, useState } from "react"
import { Button } from "../parts/button.tsx"
import { Command } from "../parts/command.tsx"
import { DialogFrame } from "../parts/dialog-frame.tsx"
import { FormDialog } from "../parts/form-dialog.tsx"
import { TextField } from "../parts/form-fields.tsx"
import { useWrite } from "../server/use-write.ts"

interface ForkDialogProps {
  readonly run: Run
  /** The number of the last event that the fork shares. */
  readonly at: number
  readonly onClose: () => void
}

export const ForkDialog = ({ run, at, onClose }: ForkDialogProps): ReactNode => {
  const [name, setName] = useState(`${run.agentName}-from-${at}`)
  const [message, setMessage] = useState("")
  const [made, setMade] = useState<string>()
  const fork = useWrite<Context>("Fork run", (context) => setMade(context.name))
  const submit = () =>
    fork.run({
      path: `contexts/${encodeURIComponent(run.contextName)}/fork`,
      method: "POST",
      body: { name, at, ...(message !== "" && { message }) }
    })
  if (made !== undefined)
    return (
      <DialogFrame isOpen title={`Fork from event ${at}`} onClose={onClose} returnsFocus>
        <div className="mt-4 grid gap-4 text-sm">
          <p>Fork created. It shares the log up to this event and continues independently.</p>
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
      title={`Fork from event ${at}`}
      verb="Fork"
      isBusy={fork.isBusy}
      isReady={name !== ""}
      error={fork.error}
      pointers={["/name", "/message"]}
      onSubmit={submit}
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
        label="Message"
        hint="The agent continues with this message (optional)"
        pointer="/message"
        error={fork.error}
        value={message}
        onChange={setMessage}
        lines={3}
      />
    </FormDialog>
  )
}
