/**
 * What stands where nothing is yet: what would be here, and a command that brings it.
 */
import type { ReactNode } from "react"
import { Command } from "./command.tsx"

interface EmptyStateProps {
  readonly title: string
  readonly children: ReactNode
  /** A command that works. */
  readonly command?: string
  /** What the command does. */
  readonly does?: string
}

export const EmptyState = ({ title, children, command, does }: EmptyStateProps): ReactNode => (
  <div data-testid="empty" className="enter mx-auto max-w-md px-2 py-12 text-center sm:py-16">
    <h2 className="text-lg font-semibold">{title}</h2>
    <p className="mt-2 text-sm text-pretty text-ink-soft">{children}</p>
    {command !== undefined && (
      <div className="mt-6">
        <Command text={command} />
      </div>
    )}
    {does !== undefined && <p className="mt-2.5 text-xs text-ink-faint">{does}</p>}
  </div>
)
