/**
 * The agents and how they fare.
 */
import type { ReactNode } from "react"
import { EmptyState } from "../parts/empty-state.tsx"
import { PageHeader } from "../parts/page-header.tsx"

export const AgentsPage = (): ReactNode => (
  <>
    <PageHeader title="Agents" />
    <EmptyState title="Not in the browser yet" command="npx tropism agents" does="lists the agents">
      All agents will be listed here with their health. The command line lists them already.
    </EmptyState>
  </>
)
