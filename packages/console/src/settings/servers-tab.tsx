/**
 * The foreign MCP servers of the project.
 */
import type { ReactNode } from "react"
import { EmptyState } from "../parts/empty-state.tsx"

export const ServersTab = (): ReactNode => (
  <EmptyState title="Not in the browser yet" command="npx tropism mcp-servers" does="lists them">
    The command line adds, tests and removes them.
  </EmptyState>
)
