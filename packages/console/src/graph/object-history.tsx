/**
 * The versions of an object under a slider: who made one, why, and what it changed.
 */
import type { ObjectVersion } from "@tropism/domain/graph"
import { useQuery } from "@tanstack/react-query"
import { Link } from "@tanstack/react-router"
import { type ReactNode, useId } from "react"
import { useConsole } from "../frame/console-context.tsx"
import { type Definition, DefinitionList } from "../parts/definition-list.tsx"
import { DifferenceList } from "../parts/difference-list.tsx"
import { Failure } from "../parts/failure.tsx"
import { JsonView } from "../parts/json-view.tsx"
import { Skeleton } from "../parts/skeleton.tsx"
import { TimeAgo } from "../parts/time-ago.tsx"
import { useAddress } from "../parts/use-address.ts"
import { Visible } from "../parts/visible.tsx"
import { agentNamesQuery } from "../server/agent-queries.ts"
import { versionQuery } from "../server/graph-queries.ts"
import { versionDifferences } from "../suggestion/property-diff.ts"
import { placeIn } from "../words/place-in.ts"
import { makerText } from "./object-words.ts"

const linkClass = "font-medium text-leaf underline-offset-2 hover:underline"

interface ObjectHistoryProps {
  readonly objectId: string
  readonly newest: number
}

export const ObjectHistory = ({ objectId, newest }: ObjectHistoryProps): ReactNode => {
  const [address, change] = useAddress()
  const id = useId()
  const shown = placeIn(address["version"], newest) ?? newest
  const against = placeIn(address["against"], newest)
  return (
    <>
      <div className="mb-5 flex flex-wrap items-center gap-x-6 gap-y-3 text-sm">
        <label htmlFor={id} className="font-medium">
          Version {shown} of {newest}
        </label>
        <input
          id={id}
          type="range"
          min={1}
          max={newest}
          value={shown}
          onChange={({ target }) => change({ version: target.value })}
          className="min-w-48 grow accent-leaf"
        />
        <label className="flex items-center gap-2 text-ink-soft">
          compared with
          <select
            value={against ?? ""}
            onChange={({ target }) => change({ against: target.value })}
            className="h-9 rounded-lg border border-line-strong bg-surface px-2.5"
          >
            <option value="">previous version</option>
            <option value={newest}>latest</option>
            {against !== undefined && against !== newest && (
              <option value={against}>version {against}</option>
            )}
            {shown !== against && shown !== newest && <option value={shown}>Pin this version</option>}
          </select>
        </label>
      </div>
      <Version key={shown} objectId={objectId} shown={shown} against={against} />
    </>
  )
}

interface VersionProps {
  readonly objectId: string
  readonly shown: number
  /** What it is compared with; undefined is the one before. */
  readonly against: number | undefined
}

const Version = ({ objectId, shown, against }: VersionProps): ReactNode => {
  const { project } = useConsole()
  const { data, error } = useQuery(versionQuery(project.id, objectId, shown))
  const other = useQuery({
    ...versionQuery(project.id, objectId, against ?? shown),
    enabled: against !== undefined
  })
  const { data: names } = useQuery(agentNamesQuery(project.id))
  const [version, previous] = data?.items ?? []
  if (version === undefined)
    return error === null ? <Skeleton label="Loading version …" /> : <Failure error={error} />
  const before = against === undefined ? previous : other.data?.items[0]
  const [from, to] =
    before !== undefined && before.version > version.version ? [version, before] : [before, version]
  return (
    <>
      <section aria-label="About this version" className="mb-6">
        <DefinitionList items={aboutVersion(version, names)} />
      </section>
      <h2 className="mb-2 text-sm font-semibold">
        {from === undefined ? "Initial properties" : `From version ${from.version} to version ${to.version}`}
      </h2>
      {to.type === "deleted" && against === undefined ? (
        <p className="mb-6 text-sm text-ink-soft">Deleted. Last values:</p>
      ) : (
        <DifferenceList rows={versionDifferences(from?.properties ?? {}, to.properties)} />
      )}
      <details className="mt-6">
        <summary className="mb-2 text-sm text-ink-soft">All properties of version {version.version}</summary>
        <JsonView value={version.properties} label={`Version ${version.version}`} />
      </details>
    </>
  )
}

const aboutVersion = (
  version: ObjectVersion,
  names: ReadonlyMap<string, string> | undefined
): ReadonlyArray<Definition> => [
  {
    name: "Created",
    value: (
      <>
        {version.type} by{" "}
        <Visible text={makerText({ ...version, agentName: names?.get(version.actorId ?? "") ?? null })} />,{" "}
        <TimeAgo instant={version.createdAt} />
      </>
    )
  },
  {
    name: "Event",
    value: (
      <Link to="/events/$eventId" params={{ eventId: version.eventId }} className={linkClass}>
        changes and triggered agents
      </Link>
    )
  },
  ...(version.runId === null
    ? []
    : [
        {
          name: "Run",
          value: (
            <Link to="/runs/$runId" params={{ runId: version.runId }} className={linkClass}>
              view run
            </Link>
          )
        }
      ]),
  ...(version.taskId === null
    ? []
    : [
        {
          name: "Task",
          value: (
            <Link to="/tasks/$taskId" params={{ taskId: version.taskId }} className={linkClass}>
              view task
            </Link>
          )
        }
      ])
]
