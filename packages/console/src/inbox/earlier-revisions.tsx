/**
 * What a suggestion said before its agent refined it: values and reasons, newest first, read once they are asked for.
 */
import type { Page } from "@tropism/api/page"
import type { SuggestionTask, TaskRevision } from "@tropism/domain/task"
import { useQuery } from "@tanstack/react-query"
import { type ReactNode, useState } from "react"
import { limits } from "../limits.ts"
import { Failure } from "../parts/failure.tsx"
import { ChevronIcon } from "../parts/icons.tsx"
import { LongText } from "../parts/long-text.tsx"
import { TimeAgo } from "../parts/time-ago.tsx"
import { reading } from "../server/reading.ts"
import { requestedRows } from "../suggestion/property-diff.ts"
import { PropertyRows } from "./property-rows.tsx"

interface EarlierRevisionsProps {
  readonly projectId: string
  readonly task: SuggestionTask
}

export const EarlierRevisions = ({ projectId, task }: EarlierRevisionsProps): ReactNode => {
  const [isOpen, setIsOpen] = useState(false)
  const { data, error } = useQuery({ ...revisionsQuery(projectId, task), enabled: isOpen })
  if (task.revision === 1) return null
  return (
    <details
      open={isOpen}
      onToggle={(event) => setIsOpen(event.currentTarget.open)}
      className="group min-w-0 basis-full"
    >
      <summary className="flex w-fit items-center gap-1 rounded text-ink-soft hover:text-ink">
        <ChevronIcon size="small" className="transition-transform group-open:rotate-90" />
        Revision {task.revision}, show earlier
      </summary>
      {error !== null && isOpen && <Failure error={error} />}
      <ol aria-label="Earlier revisions" className="mt-2 grid gap-3 border-l-2 border-line pl-3.5">
        {(isOpen ? (data?.items ?? []) : []).map((revision) => (
          <li key={revision.revision} className="grid min-w-0 gap-1.5">
            <Revision revision={revision} />
          </li>
        ))}
        {isOpen && typeof data?.nextCursor === "string" && (
          <li className="text-ink-faint">Older revisions are not shown</li>
        )}
      </ol>
    </details>
  )
}

/** The number of the newest is part of the key: what was said before only grows with it. */
const revisionsQuery = (projectId: string, { id, revision }: SuggestionTask) =>
  reading<Page<TaskRevision>>({
    projectId,
    key: ["tasks", id, "revisions", revision],
    path: `tasks/${encodeURIComponent(id)}/revisions`,
    parameters: { limit: limits.maxEarlierRevisions },
    isLasting: true
  })

/** What moved since is told of the newest alone. */
const notJudged = { staleness: null }

const Revision = ({ revision }: { readonly revision: TaskRevision }): ReactNode => {
  const { payload } = revision
  const rows = requestedRows(payload.suggestedChanges)
  return (
    <>
      <p className="text-ink-faint">
        Revision {revision.revision}, <TimeAgo instant={revision.createdAt} />
      </p>
      {rows.length > 0 && <PropertyRows rows={rows} task={notJudged} seen={undefined} />}
      <p className="max-w-[68ch] whitespace-pre-line text-ink-soft">
        {payload.reasoning === undefined ? (
          "The agent gave no reason."
        ) : (
          <LongText text={payload.reasoning} />
        )}
      </p>
    </>
  )
}
