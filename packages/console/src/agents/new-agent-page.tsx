/**
 * The form that makes an agent.
 */
import type { ReactNode } from "react"
import { EmptyState } from "../parts/empty-state.tsx"
import { PageHeader } from "../parts/page-header.tsx"

export const NewAgentPage = (): ReactNode => (
  <>
    <PageHeader title="New agent" />
    <EmptyState
      title="Not in the browser yet"
      command="npx tropism apply"
      does="makes the agents that the files here define"
    >
      A form for a new agent will be here. The command line makes agents from files already.
    </EmptyState>
  </>
)
