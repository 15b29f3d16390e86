/**
 * What the agents did and do: the list of runs.
 */
import type { ReactNode } from "react"
import { EmptyState } from "../parts/empty-state.tsx"
import { PageHeader } from "../parts/page-header.tsx"

export const RunsPage = (): ReactNode => (
  <>
    <PageHeader title="Runs" />
    <EmptyState title="Not in the browser yet" command="npx tropism runs" does="lists the latest runs">
      All runs will be listed here, the newest first. The command line lists them already.
    </EmptyState>
  </>
)
