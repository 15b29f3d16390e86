/**
 * A context whose log is this run's up to an event, and what is said in it first.
 */
import type { Context } from "@tropism/api/contexts-api"
import type { Run } from "@tropism/domain/run"
import { useMutation } from "@tanstack/react-query"
import { Effect } from "effect"
import { type ReactNode, useState } from "react"
import { useConsole } from "../frame/console-context.tsx"
import { Button } from "../parts/button.tsx"
import { Command } from "../parts/command.tsx"
import { DialogFrame } from "../parts/dialog-frame.tsx"
import { Failure } from "../parts/failure.tsx"
import { TextField } from "../parts/form-fields.tsx"
import { call, inProject } from "../server/request.ts"

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
  const { mutate, isPending, error, data } = useMutation({
    mutationFn: () =>
      Effect.runPromise(
        Effect.gen(function* () {
          const fork = yield* call<Context>(
            inProject(project.id, `contexts/${encodeURIComponent(run.contextName)}/fork`),
            { method: "POST", body: { name, at } }
          )
          if (message !== "")
            yield* call<unknown>(inProject(project.id, `contexts/${encodeURIComponent(fork.name)}/events`), {
              method: "POST",
              body: { type: "UserMessageEvent", content: message }
            })
          return fork
        })
      )
  })
  return (
    <DialogFrame isOpen title={`Fork after event ${at}`} onClose={onClose} returnsFocus>
      {data === undefined ? (
        <form
          className="mt-4 grid gap-4"
          onSubmit={(event) => {
            event.preventDefault()
            mutate()
          }}
        >
          <TextField
            label="Name of the new context"
            pointer="/name"
            error={error}
            value={name}
            onChange={setName}
            isRequired
            hasFirstFocus
          />
          <TextField
            label="Say in it"
            hint="The agent goes on from there; empty says nothing yet"
            pointer="/content"
            error={error}
            value={message}
            onChange={setMessage}
            lines={3}
          />
          {error !== null && <Failure error={error} />}
          <div className="flex justify-end gap-2">
            <Button onClick={onClose}>Close</Button>
            <Button type="submit" weight="primary" disabled={isPending}>
              Fork
            </Button>
          </div>
        </form>
      ) : (
        <div className="mt-4 grid gap-4 text-sm">
          <p>The fork is there. What was shared is not copied, and each goes on by itself.</p>
          <Command text={`npx tropism contexts show ${data.name}`} />
          <p className="text-right">
            <Button weight="primary" onClick={onClose} data-first-focus>
              Done
            </Button>
          </p>
        </div>
      )}
    </DialogFrame>
  )
}
