/**
 * A new agent.
 */
import type { Agent } from "@tropism/domain/agent"
import { Link, useNavigate } from "@tanstack/react-router"
import type { ReactNode } from "react"
import { useConsole } from "../frame/console-context.tsx"
import { PageHeader } from "../parts/page-header.tsx"
import { useWrite } from "../server/use-write.ts"
import { emptyDraft } from "./agent-draft.ts"
import { AgentForm } from "./agent-form.tsx"

export const NewAgentPage = (): ReactNode => {
  const { isAdmin } = useConsole()
  const navigate = useNavigate()
  const { run, isBusy, error } = useWrite<Agent>(({ id }) =>
    navigate({ to: "/agents/$agentId", params: { agentId: id } })
  )
  return (
    <>
      <PageHeader above={<Link to="/agents">Agents</Link>} title="New agent" />
      {isAdmin ? (
        <AgentForm
          initial={emptyDraft}
          verb="Make the agent"
          isBusy={isBusy}
          error={error}
          onSave={(body) => run({ path: "agents", method: "POST", body })}
        />
      ) : (
        <p className="text-sm text-ink-soft">Admins may make agents.</p>
      )}
    </>
  )
}
