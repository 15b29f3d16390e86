/**
 * The graph: a search, and a picture of what it finds.
 */
import type { ReactNode } from "react"
import { EmptyState } from "../parts/empty-state.tsx"
import { PageHeader } from "../parts/page-header.tsx"

export const GraphPage = (): ReactNode => (
  <>
    <PageHeader title="Graph" />
    <EmptyState
      title="Not in the browser yet"
      command="npx tropism export"
      does="writes all objects and relationships, one a line"
    >
      Objects will be searched and drawn here. The command line writes them to a file already.
    </EmptyState>
  </>
)
