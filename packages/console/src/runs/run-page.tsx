/**
 * One run: what happened in it, and why it ended as it did.
 */
import type { ReactNode } from "react"
import { EmptyState } from "../parts/empty-state.tsx"
import { PageHeader } from "../parts/page-header.tsx"

export const RunPage = (): ReactNode => (
  <>
    <PageHeader title="Run" />
    <EmptyState
      title="Not in the browser yet"
      command="npx tropism runs show RUN"
      does="shows a run with its steps"
    >
      This run will be told here step by step. The command line tells it already.
    </EmptyState>
  </>
)
