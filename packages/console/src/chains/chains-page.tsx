/**
 * Chains: what followed from what, from the latest root events on.
 */
import type { ReactNode } from "react"
import { EmptyState } from "../parts/empty-state.tsx"
import { PageHeader } from "../parts/page-header.tsx"

export const ChainsPage = (): ReactNode => (
  <>
    <PageHeader title="Chains" />
    <EmptyState
      title="Not in the browser yet"
      command="npx tropism chain EVENT"
      does="shows all that followed from an event"
    >
      The latest chains will be listed here. The command line shows one already.
    </EmptyState>
  </>
)
