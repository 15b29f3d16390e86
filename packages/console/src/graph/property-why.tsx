/**
 * Why a property has its value: what the model said, who approved it, and each event back to the root.
 */
import type { PropertyProvenance, ProvenanceHop } from "@tropism/domain/provenance"
import { useQuery } from "@tanstack/react-query"
import { Link } from "@tanstack/react-router"
import type { ReactNode } from "react"
import { useConsole } from "../frame/console-context.tsx"
import { LongText } from "../parts/long-text.tsx"
import { TimeAgo } from "../parts/time-ago.tsx"
import { Visible } from "../parts/visible.tsx"
import { autonomyQuery } from "../server/agent-queries.ts"
import { makerText } from "./object-words.ts"

const linkClass = "font-medium text-leaf underline-offset-2 hover:underline"

export const PropertyWhy = ({ property }: { readonly property: PropertyProvenance }): ReactNode => {
  const promotionId = property.toolCall?.promotionId ?? undefined
  const maker = property.chain[0]?.run
  const agentId = maker?.agentId
  return (
    <div className="mt-3 border-t border-line pt-3 text-sm">
      {property.toolCall?.reasoning && (
        <p className="mb-2">
          Agent's reason: <LongText text={property.toolCall.reasoning} />
        </p>
      )}
      {property.toolCall?.confidence !== undefined && property.toolCall.confidence !== null && (
        <p className="mb-2 text-ink-soft">Confidence: {Math.round(property.toolCall.confidence * 100)}%.</p>
      )}
      {promotionId !== undefined && agentId !== undefined && (
        <EarnedTrust agentId={agentId} agentVersion={maker?.agentVersion} promotionId={promotionId} />
      )}
      {property.task !== null && (
        <p className="mb-2">
          Decided in{" "}
          <Link to="/tasks/$taskId" params={{ taskId: property.task.id }} className={linkClass}>
            <Visible text={`#${property.task.number} ${property.task.title}`} />
          </Link>
        </p>
      )}
      <ol
        aria-label="Path to the root event"
        className="m-0 grid list-none gap-2 border-l-2 border-line p-0 pl-4"
      >
        {property.chain.map((hop) => (
          <li key={hop.eventId}>
            <Hop hop={hop} />
          </li>
        ))}
      </ol>
      <p className="mt-3">
        <Link to="/chains/$rootEventId" params={{ rootEventId: property.rootEventId }} className={linkClass}>
          View full chain
        </Link>
      </p>
    </div>
  )
}

interface EarnedTrustProps {
  readonly agentId: string
  /** The version that earned it. */
  readonly agentVersion: number | undefined
  readonly promotionId: string
}

/** That nobody was asked, and the task that told people why: their decisions stand in it. */
const EarnedTrust = ({ agentId, agentVersion, promotionId }: EarnedTrustProps): ReactNode => {
  const { project } = useConsole()
  const { data } = useQuery(autonomyQuery(project.id, agentId, agentVersion))
  const promotion = data?.promotions.find(({ id }) => id === promotionId)
  return (
    <p data-testid="earned-trust" className="mb-2">
      Auto-approved: the agent has earned trust for this change.{" "}
      {promotion === undefined ? (
        <Link to="/agents/$agentId" params={{ agentId }} className={linkClass}>
          View earned trust
        </Link>
      ) : (
        <Link to="/tasks/$taskId" params={{ taskId: promotion.taskId }} className={linkClass}>
          View how it was earned
        </Link>
      )}
    </p>
  )
}

const Hop = ({ hop }: { readonly hop: ProvenanceHop }): ReactNode => (
  <>
    <Link to="/events/$eventId" params={{ eventId: hop.eventId }} className={linkClass}>
      <Visible text={`${hop.objectType}${hop.key === null ? "" : ` ${hop.key}`} ${hop.type}`} />
    </Link>
    , version {hop.version}, by <Visible text={makerText(hop)} />, <TimeAgo instant={hop.createdAt} />
    {hop.run !== null && (
      <span className="block text-xs text-ink-soft">
        in{" "}
        <Link to="/runs/$runId" params={{ runId: hop.run.id }} className={linkClass}>
          a run of <Visible text={hop.run.agentName} />
        </Link>
        , version {hop.run.agentVersion}
        {hop.run.model !== null && (
          <>
            , with <Visible text={hop.run.model} />
          </>
        )}
        {`, trigger: ${hop.run.trigger}`}
        {hop.run.triggeredBy !== null && (
          <>
            {" "}
            of <Visible text={hop.run.triggeredBy} />
          </>
        )}
      </span>
    )}
  </>
)
