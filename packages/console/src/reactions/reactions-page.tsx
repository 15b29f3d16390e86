/**
 * What agents react to, and what became of it.
 */
import type { ReactNode } from "react"
import { EmptyState } from "../parts/empty-state.tsx"
import { PageHeader } from "../parts/page-header.tsx"

export const ReactionsPage = (): ReactNode => (
  <>
    <PageHeader title="Reactions" />
    <EmptyState title="Not in the browser yet" command="npx tropism agents" does="lists the agents">
      The queue of each agent will be shown here. The command line lists agents with theirs already.
    </EmptyState>
  </>
)
