/**
 * What a person may do with an agent: run it now, disable or enable it, delete it.
 */
import type { Agent } from "@tropism/domain/agent"
import type { Run } from "@tropism/domain/run"
import { useMutation, useQueryClient } from "@tanstack/react-query"
import { useNavigate } from "@tanstack/react-router"
import { Effect } from "effect"
import { type ReactNode, useState } from "react"
import { useConsole } from "../frame/console-context.tsx"
import { Button } from "../parts/button.tsx"
import { ConfirmDialog } from "../parts/confirm-dialog.tsx"
import { DialogFrame } from "../parts/dialog-frame.tsx"
import { Failure } from "../parts/failure.tsx"
import { TextField } from "../parts/form-fields.tsx"
import { agentPath } from "../server/agent-queries.ts"
import { call, inProject } from "../server/request.ts"
import { visibleText } from "../words/visible-text.ts"

export const AgentActions = ({ agent }: { readonly agent: Agent }): ReactNode => {
  const { project, canAnswer, isAdmin } = useConsole()
  const queryClient = useQueryClient()
  const navigate = useNavigate()
  const [isRunning, setIsRunning] = useState(false)
  const [isDeleting, setIsDeleting] = useState(false)
  const address = inProject(project.id, agentPath(agent.id))
  const freshen = () => queryClient.invalidateQueries({ queryKey: [project.id] })
  const toggle = useMutation({
    mutationFn: () =>
      Effect.runPromise(
        call<Agent>(address, { method: "PATCH", ifMatch: agent.version, body: { enabled: !agent.enabled } })
      ),
    onSettled: freshen
  })
  const remove = useMutation({
    mutationFn: () => Effect.runPromise(call<null>(address, { method: "DELETE", ifMatch: agent.version })),
    onSuccess: () => freshen().then(() => navigate({ to: "/agents" }))
  })
  return (
    <>
      {canAnswer && (
        <Button weight="primary" onClick={() => setIsRunning(true)}>
          Run now
        </Button>
      )}
      {isAdmin && (
        <Button disabled={toggle.isPending} onClick={() => toggle.mutate()}>
          {agent.enabled ? "Disable" : "Enable"}
        </Button>
      )}
      {isAdmin && <Button onClick={() => setIsDeleting(true)}>Delete</Button>}
      {!canAnswer && <span className="text-xs text-ink-faint">Editors may run it.</span>}
      {toggle.error !== null && <Failure error={toggle.error} />}
      {isRunning && <RunDialog agent={agent} onClose={() => setIsRunning(false)} />}
      <ConfirmDialog
        isOpen={isDeleting}
        title={`Delete the agent ${visibleText(agent.name)}?`}
        verb="Delete it"
        isBusy={remove.isPending}
        error={remove.error}
        onConfirm={() => remove.mutate()}
        onClose={() => setIsDeleting(false)}
      >
        It wakes for nothing any more. What it did stays, with its runs and its versions.
      </ConfirmDialog>
    </>
  )
}

interface RunDialogProps {
  readonly agent: Agent
  readonly onClose: () => void
}

const RunDialog = ({ agent, onClose }: RunDialogProps): ReactNode => {
  const { project } = useConsole()
  const navigate = useNavigate()
  const [input, setInput] = useState("")
  const { mutate, isPending, error } = useMutation({
    mutationFn: () =>
      Effect.runPromise(
        call<Run>(inProject(project.id, agentPath(agent.id, "/trigger?wait=false")), {
          method: "POST",
          body: input === "" ? {} : { input }
        })
      ),
    onSuccess: ({ id }) => navigate({ to: "/runs/$runId", params: { runId: id } })
  })
  return (
    <DialogFrame isOpen title={`Run ${visibleText(agent.name)}`} onClose={onClose} returnsFocus>
      <form
        className="mt-4 grid gap-4"
        onSubmit={(event) => {
          event.preventDefault()
          mutate()
        }}
      >
        <TextField
          label="Input"
          hint="What it works on; it may be empty"
          value={input}
          onChange={setInput}
          lines={4}
          hasFirstFocus
        />
        {error !== null && <Failure error={error} />}
        <div className="flex justify-end gap-2">
          <Button onClick={onClose}>Close</Button>
          <Button type="submit" weight="primary" disabled={isPending}>
            Run
          </Button>
        </div>
      </form>
    </DialogFrame>
  )
}
