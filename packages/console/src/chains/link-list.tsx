/**
 * The links of a chain in words, in the order in which they came to be; each as deep as it lies.
 */
import type { ChainLink } from "@tropism/api/chains-api"
import { Link, type LinkProps } from "@tanstack/react-router"
import type { ReactNode } from "react"
import { DataList } from "../parts/data-list.tsx"
import { TimeAgo } from "../parts/time-ago.tsx"
import { Visible } from "../parts/visible.tsx"
import { shortText } from "../words/cut-text.ts"
import { linkState, linkText } from "./chain-words.ts"

/** Deeper links are told by a number, so that a phone still shows their words. */
const maxIndent = 6

interface LinkListProps {
  readonly links: ReadonlyArray<ChainLink>
  /** Of agents, by their ids. */
  readonly names: ReadonlyMap<string, string>
}

export const LinkList = ({ links, names }: LinkListProps): ReactNode => (
  <DataList label="Events, runs and tasks" rows={links} keyOf={({ id }) => id} estimatedHeightPx={52}>
    {(link) => (
      <div
        data-link={link.type}
        data-state={linkState(link)}
        className="relative border-b border-line py-2.5 pr-3 text-sm focus-within:bg-sunken hover:bg-sunken"
        style={{ paddingLeft: `${0.75 + Math.min(depthOf(link), maxIndent) * 1.25}rem` }}
      >
        <div className="flex flex-wrap items-baseline justify-between gap-x-4">
          <Link
            {...placeOf(link)}
            className="min-w-0 font-medium [overflow-wrap:anywhere] after:absolute after:inset-0"
          >
            <Visible text={shortText(linkText(link), 2, 240)} />
          </Link>
          <span className="text-xs text-ink-faint">
            {linkState(link)}, depth {depthOf(link)}, <TimeAgo instant={madeAt(link)} />
            {link.type === "event" && link.undoneBy !== null && (
              <>
                ,{" "}
                <Link
                  to="/tasks/$taskId"
                  params={{ taskId: link.undoneBy.taskId }}
                  data-testid="undone-by"
                  className="relative font-medium text-leaf underline-offset-2 hover:underline"
                >
                  undone by #{link.undoneBy.number}
                </Link>
              </>
            )}
          </span>
        </div>
        {link.type === "event" &&
          link.event.refusals.map(({ agentId, reason }) => (
            <p key={agentId} className="mt-0.5 text-xs [overflow-wrap:anywhere] text-caution-ink">
              <Visible text={`${names.get(agentId) ?? "An agent"} was not triggered: ${reason}`} />
            </p>
          ))}
      </div>
    )}
  </DataList>
)

const placeOf = (link: ChainLink): LinkProps => {
  switch (link.type) {
    case "event":
      return { to: "/events/$eventId", params: { eventId: link.id } }
    case "run":
      return { to: "/runs/$runId", params: { runId: link.id } }
    case "task":
      return { to: "/tasks/$taskId", params: { taskId: link.id } }
  }
}

const depthOf = (link: ChainLink): number =>
  link.type === "event" ? link.event.depth : link.type === "run" ? link.run.depth : link.task.depth

const madeAt = (link: ChainLink): string =>
  link.type === "event"
    ? link.event.createdAt
    : link.type === "run"
      ? link.run.createdAt
      : link.task.createdAt
