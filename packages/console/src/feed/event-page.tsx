/**
 * One event of the graph: what changed, and who woke.
 */
import type { ReactNode } from "react"
import { EmptyState } from "../parts/empty-state.tsx"
import { PageHeader } from "../parts/page-header.tsx"

export const EventPage = (): ReactNode => (
  <>
    <PageHeader title="Event" />
    <EmptyState
      title="Not in the browser yet"
      command="npx tropism explain EVENT"
      does="tells who an event woke, and who not"
    >
      This event will be shown here. The command line tells whom it woke already.
    </EmptyState>
  </>
)
