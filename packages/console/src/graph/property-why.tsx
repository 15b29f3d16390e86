/**
 * Why a property has its value: what the model said, who approved it, and each event back to the root.
 */
import type { PropertyProvenance, ProvenanceHop } from "@tropism/domain/provenance"
import { Link } from "@tanstack/react-router"
import type { ReactNode } from "react"
import { LongText } from "../parts/long-text.tsx"
import { TimeAgo } from "../parts/time-ago.tsx"
import { Visible } from "../parts/visible.tsx"
import { makerText } from "./object-words.ts"

const linkClass = "font-medium text-leaf underline-offset-2 hover:underline"

export const PropertyWhy = ({ property }: { readonly property: PropertyProvenance }): ReactNode => (
  <div className="mt-3 border-t border-line pt-3 text-sm">
    {property.toolCall?.reasoning && (
      <p className="mb-2">
        The agent said: <LongText text={property.toolCall.reasoning} />
      </p>
    )}
    {property.toolCall?.confidence !== undefined && property.toolCall.confidence !== null && (
      <p className="mb-2 text-ink-soft">It was {Math.round(property.toolCall.confidence * 100)} % sure.</p>
    )}
    {property.task !== null && (
      <p className="mb-2">
        Decided in{" "}
        <Link to="/tasks/$taskId" params={{ taskId: property.task.id }} className={linkClass}>
          <Visible text={`#${property.task.number} ${property.task.title}`} />
        </Link>
      </p>
    )}
    <ol aria-label="Back to the root" className="m-0 grid list-none gap-2 border-l-2 border-line p-0 pl-4">
      {property.chain.map((hop) => (
        <li key={hop.eventId}>
          <Hop hop={hop} />
        </li>
      ))}
    </ol>
    <p className="mt-3">
      <Link to="/chains/$rootEventId" params={{ rootEventId: property.rootEventId }} className={linkClass}>
        All that followed from the same cause
      </Link>
    </p>
  </div>
)

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
        {`, woken by ${hop.run.trigger}`}
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
