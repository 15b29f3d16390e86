/**
 * Lists of what can be made and ended: cards of one line, with what can be done at their end.
 */
import type { ReactNode } from "react"
import { DataList, type DataListProps } from "./data-list.tsx"

export const Rows = <A,>(props: DataListProps<A>): ReactNode => (
  <DataList {...props} estimatedHeightPx={props.estimatedHeightPx ?? 76} />
)

interface RowProps {
  readonly title: ReactNode
  /** Facts under the title. */
  readonly children?: ReactNode
  /** Buttons. */
  readonly actions?: ReactNode
  /** What went wrong with this row. */
  readonly below?: ReactNode
}

export const Row = ({ title, children, actions, below }: RowProps): ReactNode => (
  <div className="border-b border-line py-3.5">
    <div className="flex flex-wrap items-center justify-between gap-x-6 gap-y-2.5">
      <div className="min-w-0 grow basis-56">
        <p className="text-sm font-medium [overflow-wrap:anywhere]">{title}</p>
        {children !== undefined && (
          <p className="mt-0.5 text-xs text-ink-soft [overflow-wrap:anywhere]">{children}</p>
        )}
      </div>
      {actions !== undefined && <div className="flex flex-wrap items-center gap-2">{actions}</div>}
    </div>
    {below}
  </div>
)

interface SectionHeadProps {
  /** What a person learns or does here. */
  readonly lead: ReactNode
  /** Buttons; or why there are none. */
  readonly children?: ReactNode
}

export const SectionHead = ({ lead, children }: SectionHeadProps): ReactNode => (
  <div className="mb-3 flex flex-wrap items-start justify-between gap-x-6 gap-y-3">
    <p className="max-w-prose text-sm text-pretty text-ink-soft">{lead}</p>
    {children}
  </div>
)

/** Why buttons are missing, said once. */
export const OnlyAdmins = ({ children }: { readonly children: ReactNode }): ReactNode => (
  <p data-testid="admins-only" className="text-xs text-ink-faint">
    {children}
  </p>
)
