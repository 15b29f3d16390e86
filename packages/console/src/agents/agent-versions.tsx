/**
 * The versions of an agent: who made each, what it changed, and going back to one.
 */
import type { Agent } from "@tropism/domain/agent"
import type { AgentVersionSummary } from "@tropism/domain/agent-version"
import { useQuery } from "@tanstack/react-query"
import { type ReactNode, useId } from "react"
import { useConsole } from "../frame/console-context.tsx"
import { Button } from "../parts/button.tsx"
import { DifferenceList } from "../parts/difference-list.tsx"
import { Failure } from "../parts/failure.tsx"
import { Skeleton } from "../parts/skeleton.tsx"
import { TimeAgo } from "../parts/time-ago.tsx"
import { useAddress } from "../parts/use-address.ts"
import { useTyped } from "../parts/use-typed.ts"
import { Visible } from "../parts/visible.tsx"
import { placeIn } from "../words/place-in.ts"
import { agentDiffQuery, agentPath, agentVersionsQuery } from "../server/agent-queries.ts"
import { useWrite } from "../server/use-write.ts"
import { visibleText } from "../words/visible-text.ts"

export const AgentVersions = ({ agent }: { readonly agent: Agent }): ReactNode => {
  const { project, isAdmin } = useConsole()
  const [address, change] = useAddress()
  const { data, error } = useQuery(agentVersionsQuery(project.id, agent.id))
  const { run, isBusy, error: refusal } = useWrite(`Restore a version of ${visibleText(agent.name)}`)
  if (data === undefined)
    return error === null ? <Skeleton label="Loading versions …" /> : <Failure error={error} />
  const wanted = address["version"]
  const isNone = wanted !== undefined && placeIn(wanted, agent.version) === undefined
  const shown = placeIn(wanted, agent.version) ?? agent.version
  const from = placeIn(address["from"], agent.version)
  return (
    <div className="grid gap-8 lg:grid-cols-[18rem_minmax(0,1fr)]">
      <ol aria-label="Versions" className="m-0 list-none p-0">
        {data.items.map((version) => (
          <li key={version.version} className="border-b border-line py-2 text-sm">
            <VersionLine
              version={version}
              isShown={!isNone && version.version === shown}
              onShow={() => change({ version: String(version.version), from: undefined })}
              {...(isAdmin &&
                version.version !== agent.version && {
                  onRestore: () =>
                    run({
                      path: agentPath(agent.id, `/versions/${version.version}/restore`),
                      method: "POST",
                      ifMatch: agent.version
                    })
                })}
              isBusy={isBusy}
            />
          </li>
        ))}
        {data.nextCursor !== null && (
          <li className="py-2 text-xs text-ink-soft">Older versions are available in the API.</li>
        )}
      </ol>
      <div className="min-w-0">
        {refusal !== null && <Failure error={refusal} />}
        {isNone ? (
          <NoVersion
            wanted={wanted}
            newest={agent.version}
            onNewest={() => change({ version: undefined, from: undefined })}
          />
        ) : (
          <Difference
            agentId={agent.id}
            version={shown}
            from={from}
            newest={agent.version}
            onFrom={(chosen) => change({ from: chosen })}
          />
        )}
      </div>
    </div>
  )
}

interface NoVersionProps {
  readonly wanted: string
  readonly newest: number
  readonly onNewest: () => void
}

/** The address asks for a version that was never made. */
const NoVersion = ({ wanted, newest, onNewest }: NoVersionProps): ReactNode => (
  <div role="status" className="grid justify-items-start gap-3 text-sm">
    <p>
      No version <Visible text={wanted} />.
    </p>
    <Button size="small" onClick={onNewest}>
      Show version {newest} (latest)
    </Button>
  </div>
)

interface VersionLineProps {
  readonly version: AgentVersionSummary
  readonly isShown: boolean
  readonly isBusy: boolean
  readonly onShow: () => void
  readonly onRestore?: () => void
}

const VersionLine = ({ version, isShown, isBusy, onShow, onRestore }: VersionLineProps): ReactNode => (
  <>
    <div className="flex items-center justify-between gap-2">
      <Button size="small" weight={isShown ? "plain" : "quiet"} aria-pressed={isShown} onClick={onShow}>
        Version {version.version}
      </Button>
      {onRestore !== undefined && (
        <Button data-testid="restore" size="small" weight="quiet" disabled={isBusy} onClick={onRestore}>
          Restore<span className="sr-only"> version {version.version}</span>
        </Button>
      )}
    </div>
    <p className="mt-1 text-xs text-ink-soft">
      by <Visible text={version.createdBy} />, <TimeAgo instant={version.createdAt} />
      {version.restoredFrom !== null && `, restored from version ${version.restoredFrom}`}
    </p>
  </>
)

interface DifferenceProps {
  readonly agentId: string
  readonly version: number
  readonly from: number | undefined
  readonly newest: number
  readonly onFrom: (from: string | undefined) => void
}

const Difference = ({ agentId, version, from, newest, onFrom }: DifferenceProps): ReactNode => {
  const { project } = useConsole()
  const { data, error } = useQuery(agentDiffQuery(project.id, agentId, version, from))
  return (
    <>
      <div className="mb-3 flex flex-wrap items-center gap-3">
        {data !== undefined && (
          <h2 data-from={data.from ?? undefined} data-to={data.to} className="text-sm font-semibold">
            {data.from === null
              ? `Version ${data.to} is the first version`
              : `From version ${data.from} to ${data.to}`}
          </h2>
        )}
        <ComparedWith from={from} newest={newest} onFrom={onFrom} />
      </div>
      {data === undefined && (error === null ? <Skeleton label="Comparing …" /> : <Failure error={error} />)}
      {data !== undefined && (
        <DifferenceList rows={data.changes.map(({ pointer, ...sides }) => ({ name: pointer, ...sides }))} />
      )}
    </>
  )
}

/** It stays while another version is compared: whoever types has not said all of its number yet. */
const ComparedWith = ({
  from,
  newest,
  onFrom
}: Pick<DifferenceProps, "from" | "newest" | "onFrom">): ReactNode => {
  const id = useId()
  const typed = useTyped(from === undefined ? "" : String(from), onFrom)
  return (
    <label htmlFor={id} className="ml-auto flex items-center gap-2 text-xs text-ink-soft">
      compared with
      <input
        id={id}
        type="number"
        min={1}
        max={newest}
        placeholder="one before"
        {...typed}
        className="h-8 w-20 rounded-lg border border-line-strong bg-surface px-2"
      />
    </label>
  )
}
