/**
 * The whole log of a run: every event of its context as JSON, each with an address of its own.
 */
import type { Page } from "@tropism/api/page"
import type { Run } from "@tropism/domain/run"
import { useInfiniteQuery } from "@tanstack/react-query"
import { Effect } from "effect"
import { type ReactNode, useEffect, useState } from "react"
import { useConsole } from "../frame/console-context.tsx"
import { limits } from "../limits.ts"
import { Button } from "../parts/button.tsx"
import { DataList } from "../parts/data-list.tsx"
import { Failure } from "../parts/failure.tsx"
import { type Filter, FilterBar } from "../parts/filter-bar.tsx"
import { JsonView } from "../parts/json-view.tsx"
import { Skeleton } from "../parts/skeleton.tsx"
import { TimeAgo } from "../parts/time-ago.tsx"
import { useAddress } from "../parts/use-address.ts"
import { Visible } from "../parts/visible.tsx"
import { call, inProject, queryText } from "../server/request.ts"
import { countText } from "../words/amounts.ts"
import { elapsedText, eventWords, saysWords, type SentEvent } from "./event-words.ts"
import { ForkDialog } from "./fork-dialog.tsx"

const filters: ReadonlyArray<Filter> = [{ type: "text", name: "find", label: "Find in the log" }]

/** Whether an address means this event: by its id, its number, or the call that it starts. */
const isMeant = ({ id, type, callId }: SentEvent, chosen: string): boolean =>
  id === chosen || id.endsWith(`:${chosen}`) || (callId === chosen && type === "ToolCallStartedEvent")

export const RunLog = ({ run }: { readonly run: Run }): ReactNode => {
  const { project, canAnswer } = useConsole()
  const [forkAt, setForkAt] = useState<number>()
  const [{ event: chosen, find }, change] = useAddress()
  const { data, error, hasNextPage, isFetching, fetchNextPage } = useInfiniteQuery({
    queryKey: [project.id, "run-events", run.id],
    queryFn: ({ pageParam, signal }) =>
      Effect.runPromise(
        call<Page<SentEvent>>(
          inProject(
            project.id,
            `runs/${encodeURIComponent(run.id)}/events${queryText({ limit: limits.rowsPerPage, cursor: pageParam })}`
          )
        ),
        { signal }
      ),
    initialPageParam: undefined as string | undefined,
    getNextPageParam: (page: Page<SentEvent>) => page.nextCursor ?? undefined,
    refetchInterval: run.completedAt === null ? limits.refreshIntervalMs : false
  })
  const all = data?.pages.flatMap(({ items }) => items) ?? []
  const isChosenToCome = chosen !== undefined && !all.some((event) => isMeant(event, chosen))
  useEffect(() => {
    if (isChosenToCome && hasNextPage && !isFetching && error === null) fetchNextPage()
  }, [isChosenToCome, hasNextPage, isFetching, error, fetchNextPage])
  if (data === undefined)
    return error === null ? <Skeleton label="Reading the log …" /> : <Failure error={error} />
  const [first] = all
  if (first === undefined) return <p className="text-sm text-ink-soft">Its log is still empty.</p>
  const rows = all.filter((event) => saysWords(event, find))
  return (
    <>
      <FilterBar label="Find events" filters={filters} />
      {rows.length === 0 && !hasNextPage && (
        <p className="text-sm text-ink-soft">None of its {countText(all.length, "event")} says that.</p>
      )}
      <DataList
        label="Events of the log"
        rows={rows}
        {...(chosen !== undefined && { keyInView: rows.find((event) => isMeant(event, chosen))?.id })}
        keyOf={({ id }) => id}
        estimatedHeightPx={44}
        hasMore={hasNextPage}
        onMore={() => {
          if (!isFetching) fetchNextPage()
        }}
      >
        {(event) => {
          const isOpen = chosen !== undefined && isMeant(event, chosen)
          return (
            <div className="border-b border-line py-1">
              <button
                type="button"
                aria-expanded={isOpen}
                onClick={() => change({ event: isOpen ? undefined : event.id })}
                className="flex w-full flex-wrap items-baseline gap-x-3 rounded px-2 py-2 text-left text-sm hover:bg-sunken"
              >
                <span className="font-mono text-2xs text-ink-faint">
                  <Visible text={event.id} />
                </span>
                <Visible text={event.type} />
                <span className="min-w-0 grow basis-40 truncate text-xs text-ink-soft">
                  <Visible text={eventWords(event)} />
                </span>
                <span className="text-2xs text-ink-faint">
                  {elapsedText(first, event)}, <TimeAgo instant={event.timestamp} />
                </span>
              </button>
              {isOpen && (
                <div className="px-2 pb-2">
                  <JsonView label={`Event ${event.id}`} value={event} />
                  {canAnswer && (
                    <p className="mt-2">
                      <Button size="small" onClick={() => setForkAt(eventNumber(event.id))}>
                        Fork after this
                      </Button>
                    </p>
                  )}
                </div>
              )}
            </div>
          )
        }}
      </DataList>
      {forkAt !== undefined && <ForkDialog run={run} at={forkAt} onClose={() => setForkAt(undefined)} />}
    </>
  )
}

/** The number of an event of a context, which ends its id. */
const eventNumber = (id: string): number => Number(id.slice(id.lastIndexOf(":") + 1))
