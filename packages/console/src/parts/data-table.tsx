/**
 * A long list in columns, each row a link; on a phone the columns of a row stand under one another.
 */
import { Link, type LinkProps } from "@tanstack/react-router"
import type { CSSProperties, ReactNode } from "react"
import { DataList, type DataListProps } from "./data-list.tsx"

export interface Column<A> {
  readonly title: string
  /** A grid track: `minmax(0,2fr)`, `7rem`. */
  readonly width: string
  readonly cell: (row: A) => ReactNode
}

export interface DataTableProps<A> extends Omit<DataListProps<A>, "children"> {
  /** The first is the row's name and its link. */
  readonly columns: ReadonlyArray<Column<A>>
  readonly linkTo: (row: A) => LinkProps
}

export const DataTable = <A,>({ columns, linkTo, ...list }: DataTableProps<A>): ReactNode => {
  const tracks: CSSProperties & { readonly "--tracks": string } = {
    "--tracks": columns.map(({ width }) => width).join(" ")
  }
  return (
    <div style={tracks}>
      <div
        aria-hidden="true"
        className="hidden gap-4 border-b border-line px-3 pb-2 text-2xs text-ink-faint sm:grid sm:grid-cols-[var(--tracks)]"
      >
        {columns.map(({ title }) => (
          <span key={title}>{title}</span>
        ))}
      </div>
      <DataList {...list} estimatedHeightPx={list.estimatedHeightPx ?? 52}>
        {(row) => (
          <div className="relative grid gap-x-4 gap-y-1 border-b border-line px-3 py-3 text-sm focus-within:bg-sunken hover:bg-sunken sm:grid-cols-[var(--tracks)] sm:items-center">
            {columns.map(({ title, cell }, place) => (
              <div key={title} className="min-w-0">
                {place === 0 ? (
                  <Link
                    {...linkTo(row)}
                    className="font-medium outline-offset-[-2px] after:absolute after:inset-0"
                  >
                    {cell(row)}
                  </Link>
                ) : (
                  <div className="flex items-baseline gap-2 sm:block">
                    <span className="text-2xs text-ink-faint sm:sr-only">{title}</span>
                    {cell(row)}
                  </div>
                )}
              </div>
            ))}
          </div>
        )}
      </DataList>
    </div>
  )
}
