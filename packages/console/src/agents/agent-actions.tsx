/**
 * What a person may do with an agent: run it now, disable or enable it, delete it.
 */
import type { Agent } from "@tropism/domain/agent"
import type { Run } from "@tropism/domain/run"
import { useNavigate } from "@tanstack/react-router"
import { type ReactNode, useState } from "react"
import { useConsole } from "../frame/console-context.tsx"
import { Button } from "../parts/button.tsx"
import { ConfirmDialog } from "../parts/confirm-dialog.tsx"
import { Failure } from "../parts/failure.tsx"
import { FormDialog } from "../parts/form-dialog.tsx"
import { TextField } from "../parts/form-fields.tsx"
import { Visible } from "../parts/visible.tsx"
import { agentPath } from "../server/agent-queries.ts"
import { useWrite } from "../server/use-write.ts"
import { visibleText } from "../words/visible-text.ts"

interface AgentActionsProps {
  readonly agent: Agent
  /** Why no model can be asked for it; null where one can. */
  readonly missing: string | null
}

export const AgentActions = ({ agent, missing }: AgentActionsProps): ReactNode => {
  const { canAnswer, isAdmin } = useConsole()
  const navigate = useNavigate()
  const [isRunning, setIsRunning] = useState(false)
  const [isDeleting, setIsDeleting] = useState(false)
  const [isAsked, setIsAsked] = useState(false)
  const name = visibleText(agent.name)
  const toggle = useWrite(`Enable or disable ${name}`, () => setIsAsked(false))
  const remove = useWrite(`Delete ${name}`, () => navigate({ to: "/agents" }))
  const turn = () =>
    toggle.run({
      path: agentPath(agent.id),
      method: "PATCH",
      ifMatch: agent.version,
      body: { enabled: !agent.enabled }
    })
  return (
    <>
      {canAnswer && (
        <Button weight="primary" onClick={() => setIsRunning(true)}>
          Run now
        </Button>
      )}
      {isAdmin && (
        <Button
          disabled={toggle.isBusy}
          onClick={() => (missing === null || agent.enabled ? turn() : setIsAsked(true))}
        >
          {agent.enabled ? "Disable" : "Enable"}
        </Button>
      )}
      {isAdmin && <Button onClick={() => setIsDeleting(true)}>Delete</Button>}
      {!canAnswer && <span className="text-xs text-ink-faint">Only editors can run it.</span>}
      {toggle.error !== null && !isAsked && <Failure error={toggle.error} />}
      {isRunning && <RunDialog agent={agent} onClose={() => setIsRunning(false)} />}
      <ConfirmDialog
        isOpen={isAsked}
        title="Enable without a model?"
        verb="Enable it"
        staying="Leave it disabled"
        isBusy={toggle.isBusy}
        error={toggle.error}
        onConfirm={turn}
        onClose={() => setIsAsked(false)}
      >
        Every run would fail. <Visible text={missing ?? ""} />
      </ConfirmDialog>
      <ConfirmDialog
        isOpen={isDeleting}
        title={`Delete the agent ${name}?`}
        verb="Delete it"
        staying="Keep it"
        isBusy={remove.isBusy}
        error={remove.error}
        onConfirm={() => remove.run({ path: agentPath(agent.id), method: "DELETE", ifMatch: agent.version })}
        onClose={() => setIsDeleting(false)}
      >
        It is no longer triggered. Its changes, runs and versions are kept.
      </ConfirmDialog>
    </>
  )
}

interface RunDialogProps {
  readonly agent: Agent
  readonly onClose: () => void
}

const RunDialog = ({ agent, onClose }: RunDialogProps): ReactNode => {
  const navigate = useNavigate()
  const [input, setInput] = useState("")
  const { run, isBusy, error } = useWrite<Run>(`Run ${visibleText(agent.name)}`, ({ id }) =>
    navigate({ to: "/runs/$runId", params: { runId: id } })
  )
  return (
    <FormDialog
      title={`Run ${visibleText(agent.name)}`}
      verb="Run"
      isBusy={isBusy}
      error={error}
      pointers={["/input"]}
      onSubmit={() =>
        run({
          path: agentPath(agent.id, "/trigger?wait=false"),
          method: "POST",
          body: input === "" ? {} : { input }
        })
      }
      onClose={onClose}
    >
      <TextField
        label="Input"
        hint="Input for the run (optional)"
        pointer="/input"
        error={error}
        value={input}
        onChange={setInput}
        lines={4}
        hasFirstFocus
      />
    </FormDialog>
  )
}
