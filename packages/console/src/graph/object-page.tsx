/**
 * One object: its properties and where they come from, its versions, and what it is related to.
 */
import type { GraphObject } from "@tropism/domain/graph"
import type { Provenance } from "@tropism/domain/provenance"
import { useQuery } from "@tanstack/react-query"
import { Link, useParams } from "@tanstack/react-router"
import type { ReactNode } from "react"
import { useConsole } from "../frame/console-context.tsx"
import { Command } from "../parts/command.tsx"
import { Failure } from "../parts/failure.tsx"
import { NotShown } from "../parts/not-shown.tsx"
import { PageHeader } from "../parts/page-header.tsx"
import { type Tab, Tabs } from "../parts/tabs.tsx"
import { TimeAgo } from "../parts/time-ago.tsx"
import { Visible } from "../parts/visible.tsx"
import { provenanceQuery } from "../server/graph-queries.ts"
import { objectQuery, pendingTasksQuery } from "../server/queries.ts"
import { ObjectActions } from "./object-actions.tsx"
import { ObjectHistory } from "./object-history.tsx"
import { ObjectProperties } from "./object-properties.tsx"
import { ObjectRelations } from "./object-relations.tsx"
import { makerText, provenanceName } from "./object-words.ts"

export const ObjectPage = (): ReactNode => {
  const { objectId = "" } = useParams({ strict: false })
  const { project } = useConsole()
  const provenance = useQuery(provenanceQuery(project.id, objectId))
  const { data: object } = useQuery(objectQuery(project.id, objectId))
  if (provenance.data === undefined)
    return (
      <NotShown
        title="Object"
        error={provenance.error}
        reading="Loading object …"
        to="/graph"
        way="All objects"
      />
    )
  return (
    <KnownObject
      key={objectId}
      provenance={provenance.data}
      object={object ?? undefined}
      error={provenance.error}
    />
  )
}

interface KnownObjectProps {
  readonly provenance: Provenance
  /** As it is now; undefined while it is read, and of a deleted one. */
  readonly object: GraphObject | undefined
  readonly error: unknown
}

const KnownObject = ({ provenance, object, error }: KnownObjectProps): ReactNode => {
  const { objectId: id, type, version, deleted } = provenance
  const { project } = useConsole()
  // An object is read again when something happens to it: that nobody answers is heard from what is asked all the time.
  const { error: unheard } = useQuery(pendingTasksQuery(project.id))
  const failure = error ?? unheard
  const name = provenanceName(provenance)
  return (
    <>
      <PageHeader
        above={<Link to="/graph">Graph</Link>}
        title={
          <>
            <Visible text={name} />{" "}
            <span className="ml-1 align-middle text-sm font-normal text-ink-faint">
              <Visible text={type} />, version {version}
            </span>
          </>
        }
        lead={
          object && (
            <>
              Changed <TimeAgo instant={object.updatedAt} />, created <TimeAgo instant={object.createdAt} />.
            </>
          )
        }
      >
        <ObjectActions provenance={provenance} name={name} />
      </PageHeader>
      {failure !== null && <Failure error={failure} hasOlder triesAgain />}
      {deleted !== null && (
        <p
          role="status"
          data-testid="deleted-notice"
          className="mb-6 rounded-xl border border-caution-line bg-caution px-4 py-3 text-sm text-caution-ink"
        >
          It was deleted <TimeAgo instant={deleted.createdAt} /> by <Visible text={makerText(deleted)} />. Its
          last values are shown; the history is kept.
        </p>
      )}
      <OpenSuggestions objectId={id} />
      <Tabs label="About this object" tabs={tabsOf(provenance, object)} />
      <div className="mt-8 max-w-xl">
        <Command text={`npx tropism why ${id}`} />
      </div>
    </>
  )
}

const tabsOf = (provenance: Provenance, object: GraphObject | undefined): ReadonlyArray<Tab> => [
  {
    id: "properties",
    title: "Properties",
    count: provenance.properties.length,
    content: () => <ObjectProperties provenance={provenance} untrusted={object?.untrusted ?? []} />
  },
  {
    id: "history",
    title: "History",
    count: provenance.version,
    content: () => <ObjectHistory objectId={provenance.objectId} newest={provenance.version} />
  },
  {
    id: "relations",
    title: "Relationships",
    content: () => <ObjectRelations provenance={provenance} />
  }
]

/** Suggestions that wait and would change this object. */
const OpenSuggestions = ({ objectId }: { readonly objectId: string }): ReactNode => {
  const { project } = useConsole()
  const { data } = useQuery(pendingTasksQuery(project.id))
  const about = (data?.tasks ?? []).filter(
    (task) =>
      "target" in task && task.target !== null && task.target !== undefined && task.target.id === objectId
  )
  if (about.length === 0) return null
  return (
    <p className="mb-6 rounded-xl border border-line bg-sunken px-4 py-3 text-sm">
      Pending review:{" "}
      {about.map(({ id, number, title }, index) => (
        <span key={id}>
          {index > 0 && ", "}
          <Link
            to="/tasks/$taskId"
            params={{ taskId: id }}
            className="font-medium text-leaf underline-offset-2 hover:underline"
          >
            <Visible text={`#${number} ${title}`} />
          </Link>
        </span>
      ))}
    </p>
  )
}
