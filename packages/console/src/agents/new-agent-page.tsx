/**
 * A new agent.
 */
import type { Agent } from "@tropism/domain/agent"
import { useMutation, useQueryClient } from "@tanstack/react-query"
import { Link, useNavigate } from "@tanstack/react-router"
import { Effect } from "effect"
import type { ReactNode } from "react"
import { useConsole } from "../frame/console-context.tsx"
import { PageHeader } from "../parts/page-header.tsx"
import { call, inProject } from "../server/request.ts"
import { emptyDraft, type Sent } from "./agent-draft.ts"
import { AgentForm } from "./agent-form.tsx"

export const NewAgentPage = (): ReactNode => {
  const { project, isAdmin } = useConsole()
  const navigate = useNavigate()
  const queryClient = useQueryClient()
  const { mutate, isPending, error } = useMutation({
    mutationFn: (body: Sent) =>
      Effect.runPromise(call<Agent>(inProject(project.id, "agents"), { method: "POST", body })),
    onSuccess: ({ id }) =>
      queryClient
        .invalidateQueries({ queryKey: [project.id, "agents"] })
        .then(() => navigate({ to: "/agents/$agentId", params: { agentId: id } }))
  })
  return (
    <>
      <PageHeader above={<Link to="/agents">Agents</Link>} title="New agent" />
      {isAdmin ? (
        <AgentForm
          initial={emptyDraft}
          verb="Make the agent"
          isBusy={isPending}
          error={error}
          onSave={mutate}
        />
      ) : (
        <p className="text-sm text-ink-soft">Admins may make agents.</p>
      )}
    </>
  )
}
