/**
 * Asks what an agent would do with an object: a dry run over its newest change, which touches nobody.
 */
import type { Backtest } from "@tropism/domain/backtest"
import { useQuery } from "@tanstack/react-query"
import { useNavigate } from "@tanstack/react-router"
import { type ReactNode, useState } from "react"
import { useConsole } from "../frame/console-context.tsx"
import { FormDialog } from "../parts/form-dialog.tsx"
import { ChoiceField } from "../parts/form-fields.tsx"
import { agentNamesQuery, agentPath } from "../server/agent-queries.ts"
import { useWrite } from "../server/use-write.ts"
import { visibleText } from "../words/visible-text.ts"

interface TryAgentProps {
  readonly objectId: string
  readonly onClose: () => void
}

const noAgents: ReadonlyMap<string, string> = new Map()

export const TryAgent = ({ objectId, onClose }: TryAgentProps): ReactNode => {
  const { project } = useConsole()
  const navigate = useNavigate()
  const { data: agents = noAgents } = useQuery(agentNamesQuery(project.id))
  const [chosen, setChosen] = useState("")
  const agentId = chosen === "" ? ([...agents.keys()][0] ?? "") : chosen
  const { run, isBusy, error } = useWrite<Backtest>("Start backtest", ({ id }) =>
    navigate({ to: "/agents/$agentId", params: { agentId }, search: { tab: "backtests", backtest: id } })
  )
  return (
    <FormDialog
      title="Test an agent"
      verb="Start backtest"
      isBusy={isBusy}
      isReady={agentId !== ""}
      error={error}
      pointers={[]}
      onSubmit={() =>
        run({ path: agentPath(agentId, "/backtests"), method: "POST", body: { objectIds: [objectId] } })
      }
      onClose={onClose}
    >
      <p className="text-sm text-ink-soft">
        Runs the agent on the latest change of this object. It reads the graph as it was then and only
        suggests.
      </p>
      <ChoiceField
        label="Agent"
        value={agentId}
        choices={
          agents.size === 0
            ? [{ value: "", label: "No agents yet" }]
            : [...agents].map(([value, name]) => ({ value, label: visibleText(name) }))
        }
        onChange={setChosen}
      />
    </FormDialog>
  )
}
