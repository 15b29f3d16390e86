/**
 * One chain: all that followed from a root event.
 */
import type { ReactNode } from "react"
import { EmptyState } from "../parts/empty-state.tsx"
import { PageHeader } from "../parts/page-header.tsx"

export const ChainPage = (): ReactNode => (
  <>
    <PageHeader title="Chain" />
    <EmptyState
      title="Not in the browser yet"
      command="npx tropism chain EVENT"
      does="shows all that followed from an event"
    >
      This chain will be drawn here. The command line shows it already.
    </EmptyState>
  </>
)
