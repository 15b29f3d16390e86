/**
 * One agent: its definition, versions and results.
 */
import type { ReactNode } from "react"
import { EmptyState } from "../parts/empty-state.tsx"
import { PageHeader } from "../parts/page-header.tsx"

export const AgentPage = (): ReactNode => (
  <>
    <PageHeader title="Agent" />
    <EmptyState
      title="Not in the browser yet"
      command="npx tropism agents versions AGENT"
      does="lists an agent's versions"
    >
      This agent will be shown here. The command line lists its versions already.
    </EmptyState>
  </>
)
