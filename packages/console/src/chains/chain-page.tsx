/**
 * One chain: all that followed from a root event, what it may still use, what stopped it, and taking it back.
 */
import type { Chain, ChainLink } from "@tropism/api/chains-api"
import { Link, useParams } from "@tanstack/react-router"
import { useQuery } from "@tanstack/react-query"
import type { ReactNode } from "react"
import { useConsole } from "../frame/console-context.tsx"
import { Button } from "../parts/button.tsx"
import { Command } from "../parts/command.tsx"
import { DefinitionList } from "../parts/definition-list.tsx"
import { Failure } from "../parts/failure.tsx"
import { NotShown } from "../parts/not-shown.tsx"
import { PageHeader } from "../parts/page-header.tsx"
import { TimeAgo } from "../parts/time-ago.tsx"
import { UndoButton } from "../parts/undo-button.tsx"
import { Visible } from "../parts/visible.tsx"
import { agentNamesQuery } from "../server/agent-queries.ts"
import { beginningText, type Budget, budgetsOf } from "./chain-words.ts"
import { LanePicture } from "./lane-picture.tsx"
import { LinkList } from "./link-list.tsx"
import { useChain } from "./use-chain.ts"

export const ChainPage = (): ReactNode => {
  const { rootEventId = "" } = useParams({ strict: false })
  const { project } = useConsole()
  const { chain, links, error, hasMore, readMore } = useChain(project.id, rootEventId)
  const { data: names = noNames } = useQuery(agentNamesQuery(project.id))
  if (chain === undefined)
    return <NotShown title="Chain" error={error} reading="Loading chain …" to="/chains" way="All chains" />
  return (
    <>
      <PageHeader
        above={<Link to="/chains">Chains</Link>}
        title={<Visible text={titleOf(chain, links)} />}
        lead={chain.rootEvent && <TimeAgo instant={chain.rootEvent.createdAt} />}
      >
        <UndoButton path={`chains/${encodeURIComponent(chain.rootEventId)}/undo`} word="Undo this chain" />
      </PageHeader>
      {error !== null && <Failure error={error} hasOlder triesAgain />}
      <Stops chain={chain} names={names} />
      <section aria-label="Usage" className="mb-8">
        <DefinitionList
          items={budgetsOf(chain).map((budget) => ({ name: budget.name, value: <Used budget={budget} /> }))}
        />
      </section>
      <LanePicture links={links} />
      <LinkList links={links} names={names} />
      {hasMore && (
        <p className="mt-4">
          <Button onClick={readMore}>Load more</Button>
        </p>
      )}
      <div className="mt-8 max-w-xl">
        <Command text={`npx tropism chain ${chain.rootEventId}`} />
      </div>
    </>
  )
}

const noNames: ReadonlyMap<string, string> = new Map()

const titleOf = (chain: Chain, links: ReadonlyArray<ChainLink>): string => {
  const first = links.find((link) => link.type === "run" && link.id === chain.rootEventId)
  return beginningText({
    rootEvent: chain.rootEvent,
    agents: first?.type === "run" ? [first.run.agentName] : []
  })
}

const Used = ({ budget: { name, text, share } }: { readonly budget: Budget }): ReactNode => (
  <span className="flex flex-wrap items-center gap-x-3">
    <span>{text}</span>
    {share !== null && (
      <meter aria-label={`${name} used`} min={0} max={1} high={0.9} value={share} className="h-2 w-28" />
    )}
  </span>
)

/** What kept agents from waking, each with its sentence; nothing where nothing did. */
const Stops = ({
  chain,
  names
}: {
  readonly chain: Chain
  readonly names: ReadonlyMap<string, string>
}): ReactNode => {
  if (chain.stops.length === 0) return null
  return (
    <section
      aria-label="Limits reached"
      className="mb-6 rounded-xl border border-caution-line bg-caution px-4 py-3 text-sm text-caution-ink"
    >
      <h2 className="font-semibold">Limit reached</h2>
      <ul className="m-0 mt-1 list-none p-0">
        {chain.stops.map(({ agentId, eventId, reason }) => (
          <li key={`${eventId} ${agentId}`} className="[overflow-wrap:anywhere]">
            <Visible text={`${names.get(agentId) ?? "An agent"} was not triggered: ${reason}`} />{" "}
            <Link to="/events/$eventId" params={{ eventId }} className="font-medium underline">
              View event
            </Link>
          </li>
        ))}
      </ul>
    </section>
  )
}
