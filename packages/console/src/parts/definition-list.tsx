/**
 * Names and what they stand for, side by side; one under the other on a phone.
 */
import type { ReactNode } from "react"

export interface Definition {
  readonly name: string
  readonly value: ReactNode
}

export const DefinitionList = ({ items }: { readonly items: ReadonlyArray<Definition> }): ReactNode => (
  <dl className="grid gap-x-6 gap-y-2 text-sm sm:grid-cols-[minmax(7rem,auto)_minmax(0,1fr)]">
    {items.map(({ name, value }) => (
      <div key={name} className="contents">
        <dt className="text-xs text-ink-faint sm:leading-6">{name}</dt>
        <dd className="min-w-0 [overflow-wrap:anywhere]">{value}</dd>
      </div>
    ))}
  </dl>
)
