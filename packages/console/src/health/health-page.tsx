/**
 * One verdict on the server, its evidence, and the next step.
 */
import type { ReactNode } from "react"
import { EmptyState } from "../parts/empty-state.tsx"
import { PageHeader } from "../parts/page-header.tsx"

export const HealthPage = (): ReactNode => (
  <>
    <PageHeader title="Health" />
    <EmptyState
      title="Not in the browser yet"
      command="npx tropism doctor"
      does="says what is wrong and what to do about it"
    >
      A verdict will stand here. The command line gives one already.
    </EmptyState>
  </>
)
