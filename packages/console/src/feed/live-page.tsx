/**
 * All events of the graph as they are committed, and the beginnings and ends of runs.
 */
import { useQuery } from "@tanstack/react-query"
import { type ReactNode, useMemo, useState } from "react"
import { useConsole } from "../frame/console-context.tsx"
import { useKeys } from "../keys/use-keys.ts"
import { Button } from "../parts/button.tsx"
import { DataList } from "../parts/data-list.tsx"
import { EmptyState } from "../parts/empty-state.tsx"
import { Failure } from "../parts/failure.tsx"
import { type Filter, FilterBar } from "../parts/filter-bar.tsx"
import { PageHeader } from "../parts/page-header.tsx"
import { Skeleton } from "../parts/skeleton.tsx"
import { useAddress } from "../parts/use-address.ts"
import { useFeedState } from "../server/feed-provider.tsx"
import { liveRunsQuery } from "../server/feed-queries.ts"
import type { StreamState } from "../server/event-stream.ts"
import { countText } from "../words/amounts.ts"
import { filterWords, parseFilter, passes } from "./feed-filter.ts"
import { feedItems } from "./feed-items.ts"
import { FeedRow } from "./feed-row.tsx"
import { SendEvent } from "./send-event.tsx"
import { useAgentNames } from "./use-agent-names.ts"
import { useLiveEvents } from "./use-live-events.ts"

const filters: ReadonlyArray<Filter> = [
  { type: "text", name: "filter", label: "Filter the feed", hint: "type:Person actor:agent op:updated" }
]

export const LivePage = (): ReactNode => {
  const { project, canAnswer } = useConsole()
  const state = useFeedState()
  const [{ filter: text = "", send }, change] = useAddress()
  const { events, isPending, error, hasOlder, readOlder } = useLiveEvents(project.id)
  const runs = useQuery(liveRunsQuery(project.id))
  const nameOf = useAgentNames(project.id)
  const filter = useMemo(() => parseFilter(text), [text])
  const all = useMemo(() => feedItems(events, runs.data?.items ?? []), [events, runs.data])
  const fitting = useMemo(() => all.filter((item) => passes(filter, item, nameOf)), [all, filter, nameOf])
  /** What was there when the list was held; undefined while it moves. */
  const [held, setHeld] = useState<ReadonlySet<string>>()
  const shown = held === undefined ? fitting : fitting.filter(({ id }) => held.has(id))
  const waiting = fitting.length - shown.length
  const isPaused = held !== undefined
  const pause = () => setHeld(isPaused ? undefined : new Set(all.map(({ id }) => id)))
  useKeys("Live", [{ key: "p", shown: ["P"], means: "Pause or resume the feed", run: pause }])
  return (
    <>
      <PageHeader title="Live" lead="Live stream of graph changes and runs.">
        {canAnswer ? (
          <Button onClick={() => change({ send: "1" })}>Send event</Button>
        ) : (
          <span data-testid="editors-only" className="text-xs text-ink-faint">
            Only editors can send events.
          </span>
        )}
        <Button shortcut="P" aria-pressed={isPaused} onClick={pause}>
          {isPaused ? "Resume" : "Pause"}
        </Button>
      </PageHeader>
      <p
        role="status"
        data-testid="feed-state"
        data-state={shownState(state, isPaused)}
        data-waiting={waiting}
        className="mb-4 text-sm text-ink-soft"
      >
        {stateWords[shownState(state, isPaused)]}
        {isPaused && ` ${countText(waiting, "row")} new while paused.`}
      </p>
      <FilterBar label="Filter the feed" filters={filters} />
      <FilterHelp />
      {filter.faults.map((fault) => (
        <p key={fault} role="alert" className="mb-3 text-xs text-removed-ink">
          {fault}
        </p>
      ))}
      {error !== null && <Failure error={error} hasOlder={events.length > 0} triesAgain />}
      {isPending && error === null && <Skeleton label="Loading feed …" />}
      {!isPending && shown.length === 0 && <NoRows isFiltered={text !== ""} />}
      {shown.length > 0 && (
        <DataList label="Live feed" rows={shown} keyOf={({ id }) => id} estimatedHeightPx={64}>
          {(item) => <FeedRow item={item} nameOf={nameOf} />}
        </DataList>
      )}
      {hasOlder && !isPaused && (
        <div className="mt-4">
          <Button onClick={readOlder}>Load older events</Button>
        </div>
      )}
      <SendEvent isOpen={send !== undefined && canAnswer} onClose={() => change({ send: undefined })} />
    </>
  )
}

/** A lost connection matters also while the list is held. */
const shownState = (state: StreamState, isPaused: boolean): StreamState | "paused" =>
  isPaused && state !== "lost" ? "paused" : state

const stateWords: Readonly<Record<StreamState | "paused", string>> = {
  lost: "Connection lost. Reconnecting; no events are lost.",
  paused: "Paused.",
  live: "Live",
  connecting: "Connecting …"
}

const FilterHelp = (): ReactNode => (
  <details className="mb-5 text-xs text-ink-soft">
    <summary className="w-fit text-ink-faint underline-offset-2 hover:underline">Filter syntax</summary>
    <dl className="mt-2 grid gap-x-4 gap-y-1 sm:grid-cols-[5rem_minmax(0,1fr)]">
      {Object.entries(filterWords).map(([name, means]) => (
        <div key={name} className="contents">
          <dt className="font-mono">{name}:</dt>
          <dd>{means}</dd>
        </div>
      ))}
    </dl>
    <p className="mt-2">
      Filters with different names are combined with AND. Values of the same name, or separated by commas, are
      combined with OR. A leading minus excludes: -actor:agent. Other words search the event text.
    </p>
  </details>
)

const NoRows = ({ isFiltered }: { readonly isFiltered: boolean }): ReactNode =>
  isFiltered ? (
    <EmptyState title="No matching events">
      New events that match the filter appear here. Load older events, or show all.
    </EmptyState>
  ) : (
    <EmptyState title="No events yet" command="npx tropism tail" does="follows the feed in the terminal">
      Each graph change appears here when it is committed. Send an event to try it.
    </EmptyState>
  )
