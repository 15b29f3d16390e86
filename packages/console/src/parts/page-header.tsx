/**
 * The head of a page: its title, one sentence about it, and what can be done there.
 */
import type { ReactNode } from "react"

interface PageHeaderProps {
  readonly title: ReactNode
  /** What a person learns here, in a sentence. */
  readonly lead?: ReactNode
  /** The way back up, above the title. */
  readonly above?: ReactNode
  /** Buttons. */
  readonly children?: ReactNode
}

const pageHeadingId = "page-heading"

/** Where the keyboard goes on when what was pressed is gone. */
export const focusHeading = (): void => document.getElementById(pageHeadingId)?.focus()

export const PageHeader = ({ title, lead, above, children }: PageHeaderProps): ReactNode => (
  <header className="mb-6">
    {above !== undefined && <p className="mb-1 text-xs text-ink-faint">{above}</p>}
    <div className="flex flex-wrap items-start justify-between gap-x-6 gap-y-3">
      <h1
        id={pageHeadingId}
        tabIndex={-1}
        className="min-w-0 text-xl font-semibold tracking-tight outline-none [overflow-wrap:anywhere]"
      >
        {title}
      </h1>
      {children !== undefined && <div className="flex flex-wrap items-center gap-2">{children}</div>}
    </div>
    {lead !== undefined && <p className="mt-1.5 max-w-prose text-sm text-pretty text-ink-soft">{lead}</p>}
  </header>
)
