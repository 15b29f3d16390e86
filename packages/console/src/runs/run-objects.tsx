/**
 * What a run read of the graph, wrote to it and suggests for it; each leads to the thing as it was then.
 */
import type { Run } from "@tropism/domain/run"
import type { RunObjects as Touched } from "@tropism/domain/run-objects"
import { useQuery } from "@tanstack/react-query"
import { Link } from "@tanstack/react-router"
import type { ReactNode } from "react"
import { useConsole } from "../frame/console-context.tsx"
import { Failure } from "../parts/failure.tsx"
import { Skeleton } from "../parts/skeleton.tsx"
import { Visible } from "../parts/visible.tsx"
import { runObjectsQuery } from "../server/run-queries.ts"

const linkClass = "font-medium text-leaf underline-offset-2 hover:underline [overflow-wrap:anywhere]"

export const RunObjects = ({ run }: { readonly run: Run }): ReactNode => {
  const { project } = useConsole()
  const { data, error } = useQuery(runObjectsQuery(project.id, run.id))
  if (data === undefined)
    return error === null ? <Skeleton label="Loading objects …" /> : <Failure error={error} />
  const { read, wrote, suggested } = data
  return (
    <>
      <Section title="Wrote" nothing="No changes">
        {wrote.map((one) => (
          <li key={one.eventId} className="border-b border-line py-1.5">
            {one.entityType === "graphObject" ? (
              <ObjectLink
                objectId={one.entityId}
                type={one.objectType}
                name={one.key}
                version={one.version}
              />
            ) : (
              <Visible text={one.objectType} />
            )}{" "}
            <Link to="/events/$eventId" params={{ eventId: one.eventId }} className={linkClass}>
              {one.change}
            </Link>
          </li>
        ))}
      </Section>
      <Section title="Suggested" nothing="No suggestions">
        {suggested.map(({ taskId, number, title, status }) => (
          <li key={taskId} className="border-b border-line py-1.5">
            <Link to="/tasks/$taskId" params={{ taskId }} className={linkClass}>
              <Visible text={`#${number} ${title}`} />
            </Link>{" "}
            <span data-status={status} className="text-xs text-ink-soft">
              {statusWords[status]}
            </span>
          </li>
        ))}
      </Section>
      <Section title="Read" nothing="No objects read">
        {read.map((one) => (
          <li key={`${one.objectId} ${one.version}`} className="border-b border-line py-1.5">
            <ObjectLink objectId={one.objectId} type={one.type} name={one.key} version={one.version} />
            {one.isOwn && (
              <span data-testid="own-write" className="text-xs text-ink-soft">
                {" "}
                as written by this run
              </span>
            )}
          </li>
        ))}
      </Section>
    </>
  )
}

const statusWords: Readonly<Record<Touched["suggested"][number]["status"], string>> = {
  pending: "pending review",
  completed: "approved",
  rejected: "rejected",
  expired: "expired"
}

interface ObjectLinkProps {
  readonly objectId: string
  readonly type: string
  /** Its key; null where it has none. */
  readonly name: string | null
  readonly version: number
}

const ObjectLink = ({ objectId, type, name, version }: ObjectLinkProps): ReactNode => (
  <Link
    to="/objects/$objectId"
    params={{ objectId }}
    search={{ tab: "history", version: String(version) }}
    className={linkClass}
  >
    <Visible text={`${type} ${name ?? `…${objectId.slice(-8)}`}`} />, version {version}
  </Link>
)

interface SectionProps {
  readonly title: string
  readonly nothing: string
  readonly children: ReadonlyArray<ReactNode>
}

const Section = ({ title, nothing, children }: SectionProps): ReactNode => (
  <section aria-label={title} className="mb-8">
    <h2 className="mb-1 text-sm font-semibold">{title}</h2>
    {children.length === 0 ? (
      <p className="text-sm text-ink-soft">{nothing}</p>
    ) : (
      <ul className="m-0 list-none p-0 text-sm">{children}</ul>
    )}
  </section>
)
