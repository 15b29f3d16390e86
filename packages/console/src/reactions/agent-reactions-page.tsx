/**
 * What one agent made of the events that were meant for it.
 */
import type { ReactNode } from "react"
import { EmptyState } from "../parts/empty-state.tsx"
import { PageHeader } from "../parts/page-header.tsx"

export const AgentReactionsPage = (): ReactNode => (
  <>
    <PageHeader title="Reactions" />
    <EmptyState
      title="Not in the browser yet"
      command="npx tropism explain EVENT"
      does="tells who an event woke, and who not"
    >
      The events of this agent will be listed here. The command line tells why one did not wake it already.
    </EmptyState>
  </>
)
