/**
 * One event of the graph: what changed, by whom and why, and whom it woke.
 */
import { type GraphEvent, isPurged, type GraphObject } from "@tropism/domain/graph"
import { useQuery } from "@tanstack/react-query"
import { Link, useNavigate, useParams } from "@tanstack/react-router"
import type { ReactNode } from "react"
import { useConsole } from "../frame/console-context.tsx"
import { useKeys } from "../keys/use-keys.ts"
import { Command } from "../parts/command.tsx"
import { DefinitionList } from "../parts/definition-list.tsx"
import { DifferenceList } from "../parts/difference-list.tsx"
import { Failure } from "../parts/failure.tsx"
import { JsonView } from "../parts/json-view.tsx"
import { NotShown } from "../parts/not-shown.tsx"
import { PageHeader } from "../parts/page-header.tsx"
import { Skeleton } from "../parts/skeleton.tsx"
import { TimeAgo } from "../parts/time-ago.tsx"
import { Visible } from "../parts/visible.tsx"
import { eventQuery } from "../server/feed-queries.ts"
import { reading } from "../server/reading.ts"
import { versionDifferences } from "../suggestion/property-diff.ts"
import { propertiesOf, subjectOf } from "./feed-items.ts"
import { ChangeBadge, EventActor, EventLinks } from "./feed-row.tsx"
import { useAgentNames } from "./use-agent-names.ts"
import { WokenList } from "./woken-list.tsx"

export const EventPage = (): ReactNode => {
  const { eventId = "" } = useParams({ strict: false })
  const { project } = useConsole()
  const { data: event, error } = useQuery(eventQuery(project.id, eventId))
  const navigate = useNavigate()
  const back = () => navigate({ to: "/live" })
  useKeys("Event", [{ key: "Escape", shown: ["Esc"], means: "Back to the feed", run: back }])
  if (event === undefined)
    return <NotShown title="Event" error={error} reading="Loading event …" to="/live" way="Live feed" />
  return <KnownEvent key={event.id} event={event} />
}

const KnownEvent = ({ event }: { readonly event: GraphEvent }): ReactNode => {
  const { project } = useConsole()
  const nameOf = useAgentNames(project.id)
  return (
    <>
      <PageHeader
        above={<Link to="/live">Live</Link>}
        title={
          <>
            <Visible text={`${event.objectType} ${subjectOf(event)}`} /> <ChangeBadge type={event.type} />
          </>
        }
      />
      <section aria-label="About this event" className="mb-8">
        <DefinitionList
          items={[
            { name: "By", value: <EventActor event={event} nameOf={nameOf} /> },
            { name: "When", value: <TimeAgo instant={event.createdAt} /> },
            {
              name: "Position",
              value: `${event.position === null ? "not in the feed yet" : `event ${event.position} of the feed`}, version ${event.version}, chain depth ${event.depth}`
            },
            {
              name: "Leads to",
              value: (
                <span className="flex flex-wrap gap-3">
                  <EventLinks event={event} />
                </span>
              )
            }
          ]}
        />
      </section>
      <section aria-labelledby="changed" className="mb-8">
        <h2 id="changed" className="mb-3 text-base font-semibold">
          What changed
        </h2>
        <Changed event={event} />
      </section>
      <section aria-labelledby="woke" className="mb-8">
        <h2 id="woke" className="mb-3 text-base font-semibold">
          Triggered agents
        </h2>
        <WokenList eventId={event.id} />
      </section>
      <details className="mb-6">
        <summary className="mb-2 w-fit text-xs text-ink-faint underline-offset-2 hover:underline">
          Event as JSON
        </summary>
        <JsonView label="Event" value={event} />
      </details>
      <div className="max-w-xl">
        <Command text={`npx tropism explain ${event.position ?? event.id}`} />
      </div>
    </>
  )
}

const Changed = ({ event }: { readonly event: GraphEvent }): ReactNode => {
  const { project } = useConsole()
  const isUpdate = event.type === "updated" && !isPurged(event)
  const kind = event.entityType === "graphObject" ? "objects" : "relationships"
  const before = useQuery({
    ...reading<Pick<GraphObject, "properties">>({
      projectId: project.id,
      key: ["history", event.entityId, event.version - 1],
      path: `${kind}/${encodeURIComponent(event.entityId)}`,
      parameters: { version: event.version - 1 },
      isLasting: true
    }),
    enabled: isUpdate
  })
  if (isPurged(event))
    return <p className="text-sm text-ink-soft">Purged: the content of this event was deleted permanently.</p>
  const told = propertiesOf(event)
  if (event.type === "created") return <DifferenceList rows={versionDifferences({}, told)} />
  if (event.type === "deleted") return <DifferenceList rows={versionDifferences(told, {})} />
  if (before.data !== undefined)
    return <DifferenceList rows={versionDifferences(before.data.properties, told)} />
  return before.error === null ? (
    <Skeleton label="Loading previous version …" />
  ) : (
    <Failure error={before.error} />
  )
}
