/**
 * Conversations with agents.
 */
import type { ReactNode } from "react"
import { EmptyState } from "../parts/empty-state.tsx"
import { PageHeader } from "../parts/page-header.tsx"

export const ChatPage = (): ReactNode => (
  <>
    <PageHeader title="Chat" />
    <EmptyState title="Not in the browser yet" command="npx tropism chat" does="talks with an agent">
      Conversations will be held here. The command line holds them already.
    </EmptyState>
  </>
)
