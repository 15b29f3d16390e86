/**
 * What somebody writes about has changed meanwhile: how it is now, and what can become of what is written.
 */
import type { ReactNode } from "react"

interface MovedNoticeProps {
  readonly children: ReactNode
  /** Buttons, where there is something to choose. */
  readonly actions?: ReactNode
}

export const MovedNotice = ({ children, actions }: MovedNoticeProps): ReactNode => (
  <div
    role="status"
    data-testid="moved-notice"
    className="rounded-xl border border-caution-line bg-caution px-4 py-3 text-sm text-caution-ink"
  >
    {children}
    {actions !== undefined && <p className="mt-2 flex flex-wrap gap-2">{actions}</p>}
  </div>
)
