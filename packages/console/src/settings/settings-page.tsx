/**
 * Members, tokens, sessions, foreign servers and models.
 */
import type { ReactNode } from "react"
import { EmptyState } from "../parts/empty-state.tsx"
import { PageHeader } from "../parts/page-header.tsx"

export const SettingsPage = (): ReactNode => (
  <>
    <PageHeader title="Settings" />
    <EmptyState
      title="Not in the browser yet"
      command="npx tropism members list"
      does="lists who may do what"
    >
      Members, tokens, sessions, MCP servers and models will be set here. The command line sets them already.
    </EmptyState>
  </>
)
