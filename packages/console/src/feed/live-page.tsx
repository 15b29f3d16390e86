/**
 * All events of the graph as they are committed.
 */
import type { ReactNode } from "react"
import { EmptyState } from "../parts/empty-state.tsx"
import { PageHeader } from "../parts/page-header.tsx"

export const LivePage = (): ReactNode => (
  <>
    <PageHeader title="Live" />
    <EmptyState
      title="Not in the browser yet"
      command="npx tropism tail"
      does="follows what happens in the graph, live"
    >
      Events will appear here as they happen. The command line follows them already.
    </EmptyState>
  </>
)
