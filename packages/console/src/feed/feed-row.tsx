/**
 * One row of the live feed: an event of the graph, or a run that began or ended.
 */
import type { ChangeType, GraphEvent } from "@tropism/domain/graph"
import type { Run } from "@tropism/domain/run"
import { Link } from "@tanstack/react-router"
import type { ReactNode } from "react"
import { RunStatusBadge } from "../parts/run-status.tsx"
import { TimeAgo } from "../parts/time-ago.tsx"
import { Visible } from "../parts/visible.tsx"
import { Waker } from "../runs/waker.tsx"
import { cutText } from "../words/cut-text.ts"
import { durationText } from "../words/durations.ts"
import { type FeedItem, subjectOf } from "./feed-items.ts"

export type NameOf = (agentId: string) => string | undefined

const looks: Readonly<Record<ChangeType, string>> = {
  created: "bg-added text-added-ink",
  updated: "bg-sunken text-ink-soft",
  deleted: "bg-removed text-removed-ink"
}

export const ChangeBadge = ({ type }: { readonly type: ChangeType }): ReactNode => (
  <span className={`inline-block rounded-full px-2 text-2xs leading-5 font-medium ${looks[type]}`}>
    {type}
  </span>
)

export const FeedRow = ({
  item,
  nameOf
}: {
  readonly item: FeedItem
  readonly nameOf: NameOf
}): ReactNode => (
  <div className="grid gap-x-4 gap-y-0.5 border-b border-line px-3 py-2.5 text-sm focus-within:bg-sunken hover:bg-sunken sm:grid-cols-[6.5rem_minmax(0,1fr)_auto]">
    {item.kind === "event" ? (
      <EventCells event={item.event} nameOf={nameOf} />
    ) : (
      <RunCells run={item.run} op={item.op} />
    )}
    <span className="text-2xs text-ink-faint sm:col-start-3 sm:row-start-1">
      <TimeAgo instant={item.at} />
    </span>
  </div>
)

const mainLink = "font-medium underline-offset-2 hover:underline"
const sideLink = "text-leaf underline underline-offset-2"

const EventCells = ({
  event,
  nameOf
}: {
  readonly event: GraphEvent
  readonly nameOf: NameOf
}): ReactNode => (
  <>
    <span className="sm:row-start-1">
      <ChangeBadge type={event.type} />
    </span>
    <div className="min-w-0 sm:row-start-1">
      <Link to="/events/$eventId" params={{ eventId: event.id }} className={mainLink}>
        <Visible text={`${event.objectType} ${cutText(subjectOf(event), 1, 120)}`} />
      </Link>{" "}
      <span data-version={event.version} className="text-xs text-ink-soft">
        version {event.version}
        {event.type === "updated" && event.changedProperties.length > 0 && (
          <>
            , <Visible text={cutText(event.changedProperties.join(", "), 1, 160)} />
          </>
        )}
      </span>
      <p className="mt-0.5 flex flex-wrap gap-x-3 text-xs text-ink-soft">
        <span>
          by <EventActor event={event} nameOf={nameOf} />
        </span>
        <EventLinks event={event} />
      </p>
    </div>
  </>
)

/** Who caused an event; an agent's name leads to the agent. */
export const EventActor = ({
  event,
  nameOf
}: {
  readonly event: GraphEvent
  readonly nameOf: NameOf
}): ReactNode => {
  const { actorId, actorType, approvedBy } = event
  return (
    <>
      {actorType === "agent" && actorId !== null ? (
        <>
          agent{" "}
          <Link to="/agents/$agentId" params={{ agentId: actorId }} className={sideLink}>
            <Visible text={nameOf(actorId) ?? actorId.slice(-12)} />
          </Link>
        </>
      ) : actorType === "system" ? (
        "the system"
      ) : (
        <>
          {actorType} <Visible text={actorId ?? ""} />
        </>
      )}
      {approvedBy !== null && (
        <>
          , approved by <Visible text={approvedBy} />
        </>
      )}
    </>
  )
}

/** From an event to what it happened to, the run that did it, and its chain. */
export const EventLinks = ({ event }: { readonly event: GraphEvent }): ReactNode => (
  <>
    {event.entityType === "graphObject" && (
      <Link to="/objects/$objectId" params={{ objectId: event.entityId }} className={sideLink}>
        Object
      </Link>
    )}
    {event.runId !== null && (
      <Link to="/runs/$runId" params={{ runId: event.runId }} className={sideLink}>
        Run
      </Link>
    )}
    <Link to="/chains/$rootEventId" params={{ rootEventId: event.rootEventId }} className={sideLink}>
      Chain
    </Link>
  </>
)

const RunCells = ({ run, op }: { readonly run: Run; readonly op: "began" | "ended" }): ReactNode => (
  <>
    <span className="sm:row-start-1">
      {op === "ended" ? (
        <RunStatusBadge status={run.status} />
      ) : (
        <span className="inline-block rounded-full bg-leaf-soft px-2 text-2xs leading-5 font-medium text-leaf">
          began
        </span>
      )}
    </span>
    <div className="min-w-0 sm:row-start-1">
      <Link to="/runs/$runId" params={{ runId: run.id }} className={mainLink}>
        Run of <Visible text={run.agentName} /> {op}
      </Link>{" "}
      {op === "ended" && run.durationMs !== null && (
        <span className="text-xs text-ink-soft">after {durationText(run.durationMs)}</span>
      )}
      <p className="mt-0.5 flex flex-wrap gap-x-3 text-xs text-ink-soft">
        <span className="min-w-0 [overflow-wrap:anywhere]">
          trigger: <Waker run={run} />
        </span>
        {op === "ended" && (
          <span className="min-w-0 truncate">
            <Visible text={cutText(run.errorMessage ?? run.summary ?? "No summary", 1, 160)} />
          </span>
        )}
        {run.rootEventId !== null && (
          <Link to="/chains/$rootEventId" params={{ rootEventId: run.rootEventId }} className={sideLink}>
            Chain
          </Link>
        )}
      </p>
    </div>
  </>
)
