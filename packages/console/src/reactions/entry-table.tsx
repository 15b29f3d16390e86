/**
 * Processing entries as a table: what happened, what became of it, and why.
 */
import type { ProcessingEntry } from "@tropism/domain/processing"
import type { LinkProps } from "@tanstack/react-router"
import type { ReactNode } from "react"
import { DataTable, type Column } from "../parts/data-table.tsx"
import { NamedObjectLink } from "../parts/named-object-link.tsx"
import { TimeAgo } from "../parts/time-ago.tsx"
import { Visible } from "../parts/visible.tsx"
import type { PagedList } from "../server/paged.ts"
import { cutText } from "../words/cut-text.ts"
import { namedText } from "../words/object-name.ts"
import { entryReason, entryStatusWord, subjectText } from "./reaction-words.ts"

interface EntryTableProps {
  readonly label: string
  readonly list: PagedList<ProcessingEntry>
  /** What can be done with an entry, a column of its own. */
  readonly action?: Column<ProcessingEntry>
}

export const EntryTable = ({ label, list, action }: EntryTableProps): ReactNode => (
  <DataTable
    label={label}
    rows={list.rows}
    keyOf={({ id }) => id}
    columns={action === undefined ? columns : [...columns, action]}
    linkTo={placeOf}
    hasMore={list.hasMore}
    onMore={list.readMore}
  />
)

/** The run that handled it; where none did, the event. */
const placeOf = ({ runId, eventId, entityType }: ProcessingEntry): LinkProps =>
  runId === null && entityType !== "mcpEvent"
    ? { to: "/events/$eventId", params: { eventId } }
    : { to: "/runs/$runId", params: { runId: runId ?? eventId } }

const columns: ReadonlyArray<Column<ProcessingEntry>> = [
  {
    title: "Event",
    width: "minmax(0,1fr)",
    cell: (entry) => (
      <>
        {entry.subject !== null && (
          <span className="sr-only">
            <Visible text={cutText(namedText(entry.subject), 1, 120)} />{" "}
          </span>
        )}
        {subjectText(entry)}
      </>
    )
  },
  {
    title: "Object",
    width: "minmax(0,1fr)",
    cell: ({ subject }) =>
      subject !== null && (
        <span className="text-xs">
          <NamedObjectLink object={subject} />
        </span>
      )
  },
  {
    title: "Result",
    width: "minmax(0,2fr)",
    cell: (entry) => {
      const reason = entryReason(entry)
      return (
        <span
          data-status={entry.status}
          data-attempt={entry.attempt}
          className="block min-w-0 text-xs [overflow-wrap:anywhere]"
        >
          <span className="font-medium">{entryStatusWord(entry.status)}</span>
          {entry.attempt > 1 && `, attempt ${entry.attempt}`}
          {entry.deadLetteredAt !== null && ", dead letter"}
          {reason !== undefined && (
            <span className="mt-0.5 block text-ink-soft">
              <Visible text={cutText(reason, 3, 300)} />
            </span>
          )}
        </span>
      )
    }
  },
  {
    title: "Created",
    width: "6rem",
    cell: ({ createdAt }) => (
      <span className="text-xs text-ink-soft">
        <TimeAgo instant={createdAt} />
      </span>
    )
  }
]
