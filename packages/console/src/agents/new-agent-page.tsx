/**
 * A new agent.
 */
import type { Agent } from "@tropism/domain/agent"
import { Link } from "@tanstack/react-router"
import type { ReactNode } from "react"
import { useConsole } from "../frame/console-context.tsx"
import { PageHeader } from "../parts/page-header.tsx"
import { useWrite } from "../server/use-write.ts"
import { emptyDraft } from "./agent-draft.ts"
import { AgentForm } from "./agent-form.tsx"
import { useMade } from "./use-made.ts"

export const NewAgentPage = (): ReactNode => {
  const { isAdmin } = useConsole()
  const { isMade, goTo } = useMade()
  const { run, isBusy, error } = useWrite<Agent>("Create an agent", goTo)
  return (
    <>
      <PageHeader above={<Link to="/agents">Agents</Link>} title="New agent" />
      {isAdmin ? (
        <AgentForm
          initial={emptyDraft}
          verb="Create agent"
          isBusy={isBusy || isMade}
          error={error}
          goes
          isMade={isMade}
          onSave={(body) => run({ path: "agents", method: "POST", body })}
        />
      ) : (
        <p className="text-sm text-ink-soft">Only admins can create agents.</p>
      )}
    </>
  )
}
