/**
 * The whole log of a run: every event of its context as JSON, each with an address of its own.
 */
import type { Page } from "@tropism/api/page"
import type { Run } from "@tropism/domain/run"
import { useInfiniteQuery, useQuery } from "@tanstack/react-query"
import { Effect } from "effect"
import { type ReactNode, useCallback, useEffect, useState } from "react"
import { useConsole } from "../frame/console-context.tsx"
import { limits } from "../limits.ts"
import { DataList } from "../parts/data-list.tsx"
import { Failure } from "../parts/failure.tsx"
import { type Filter, FilterBar } from "../parts/filter-bar.tsx"
import { Skeleton } from "../parts/skeleton.tsx"
import { useAddress } from "../parts/use-address.ts"
import { useTriesAgain } from "../server/paged.ts"
import { runToolCallsQuery } from "../server/run-queries.ts"
import { call, inProject, queryText } from "../server/request.ts"
import { countText } from "../words/amounts.ts"
import { EventRow, eventNumber } from "./event-row.tsx"
import { elapsedText, saysWords, type SentEvent } from "./event-words.ts"
import { flowStepsOf } from "./flow-step-words.ts"
import { ForkDialog } from "./fork-dialog.tsx"

const filters: ReadonlyArray<Filter> = [{ type: "text", name: "find", label: "Search the log" }]

/** Whether an address means this event: by its id, its number, or the call that it starts. */
const isMeant = ({ id, type, callId }: SentEvent, chosen: string): boolean =>
  id === chosen || id.endsWith(`:${chosen}`) || (callId === chosen && type === "ToolCallStartedEvent")

export const RunLog = ({ run }: { readonly run: Run }): ReactNode => {
  const { project, canAnswer } = useConsole()
  const [forkAt, setForkAt] = useState<number>()
  const [{ event: chosen, find }, change] = useAddress()
  const { data, error, hasNextPage, readMore } = useEventsOf(run)
  const calls = useQuery(runToolCallsQuery(project.id, run.id))
  const took = new Map<string | undefined, number | null>(
    calls.data?.items.map(({ callId, durationMs }) => [callId, durationMs])
  )
  const all = data?.pages.flatMap(({ items }) => items) ?? []
  const isChosenToCome = chosen !== undefined && !all.some((event) => isMeant(event, chosen))
  useEffect(() => {
    if (isChosenToCome && hasNextPage) readMore()
  }, [isChosenToCome, hasNextPage, readMore])
  if (data === undefined)
    return error === null ? <Skeleton label="Loading log …" /> : <Failure error={error} triesAgain />
  const [first] = all
  if (first === undefined) return <p className="text-sm text-ink-soft">The log is empty.</p>
  const steps = flowStepsOf(all)
  const rows = all.filter((event) => saysWords(event, find))
  return (
    <>
      <FilterBar label="Find events" filters={filters} />
      {error !== null && <Failure error={error} hasOlder triesAgain />}
      {rows.length === 0 && !hasNextPage && (
        <p data-testid="nothing-found" className="text-sm text-ink-soft">
          None of {countText(all.length, "event")} matches.
        </p>
      )}
      <DataList
        label="Log events"
        rows={rows}
        {...(chosen !== undefined && { keyInView: rows.find((event) => isMeant(event, chosen))?.id })}
        keyOf={({ id }) => id}
        estimatedHeightPx={44}
        hasMore={hasNextPage}
        onMore={readMore}
      >
        {(event) => (
          <EventRow
            event={event}
            elapsed={elapsedText(first, event)}
            flowStep={steps.get(event.id)}
            tookMs={event.type === "ToolCallStartedEvent" ? null : (took.get(event.callId) ?? null)}
            isOpen={chosen !== undefined && isMeant(event, chosen)}
            onChoose={(isOpen) => change({ event: isOpen ? event.id : undefined })}
            {...(canAnswer && { onFork: () => setForkAt(eventNumber(event.id)) })}
          />
        )}
      </DataList>
      {forkAt !== undefined && <ForkDialog run={run} at={forkAt} onClose={() => setForkAt(undefined)} />}
    </>
  )
}

/** The events of a run from its first on, page by page; a page that could not be read is asked for again after a while. */
const useEventsOf = (run: Run) => {
  const { project } = useConsole()
  const events = useInfiniteQuery({
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
  useTriesAgain(events)
  const { data, error, hasNextPage, isFetching, fetchNextPage } = events
  const readMore = useCallback(() => {
    if (!isFetching && error === null) void fetchNextPage()
  }, [isFetching, error, fetchNextPage])
  return { data, error, hasNextPage, readMore }
}
