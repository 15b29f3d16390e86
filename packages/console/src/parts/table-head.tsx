/**
 * The head of a small table: what each column is.
 */
import type { ReactNode } from "react"

export const TableHead = ({ titles }: { readonly titles: ReadonlyArray<string> }): ReactNode => (
  <thead className="text-2xs text-ink-faint">
    <tr className="border-b border-line">
      {titles.map((title) => (
        <th key={title} scope="col" className="py-1.5 pr-3 font-normal">
          {title}
        </th>
      ))}
    </tr>
  </thead>
)
