/**
 * A list of the API in columns, with what stands there while it is read, when it is empty, and when reading failed.
 */
import type { ReactNode } from "react"
import type { PagedList } from "../server/paged.ts"
import { DataTable, type DataTableProps } from "./data-table.tsx"
import { Failure } from "./failure.tsx"
import { Skeleton } from "./skeleton.tsx"
import { useHeld } from "./use-held.ts"

interface PagedTableProps<A extends { readonly id: string }> extends Pick<
  DataTableProps<A>,
  "label" | "columns" | "linkTo"
> {
  readonly list: PagedList<A>
  /** What is said while it is read: `Reading the runs …`. */
  readonly reading: string
  /** What stands there when there is nothing. */
  readonly empty: ReactNode
}

export const PagedTable = <A extends { readonly id: string }>(props: PagedTableProps<A>): ReactNode => {
  const { list: given, reading, empty, ...table } = props
  // A list that is empty now takes even the table away.
  const { held: list, press } = useHeld(given)
  return (
    <div {...press}>
      {list.error !== null && <Failure error={list.error} hasOlder={list.rows.length > 0} triesAgain />}
      <p role="status" data-testid={given.isOlder ? "reading" : undefined} className="sr-only">
        {given.isOlder && reading}
      </p>
      {list.isPending && <Skeleton label={reading} />}
      {!list.isPending && list.error === null && list.rows.length === 0 && empty}
      {list.rows.length > 0 && (
        <DataTable
          {...table}
          rows={list.rows}
          isOlder={given.isOlder}
          keyOf={({ id }) => id}
          hasMore={list.hasMore}
          onMore={list.readMore}
        />
      )}
    </div>
  )
}
