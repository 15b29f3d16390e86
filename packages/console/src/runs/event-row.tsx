/**
 * An event of a log in a row: what happened first, when, and its number last; opened, all of it.
 */
import type { ReactNode } from "react"
import { Button } from "../parts/button.tsx"
import { CopyButton } from "../parts/copy-button.tsx"
import { JsonView } from "../parts/json-view.tsx"
import { TimeAgo } from "../parts/time-ago.tsx"
import { Visible } from "../parts/visible.tsx"
import { durationText } from "../words/durations.ts"
import { eventWords, type SentEvent } from "./event-words.ts"

interface EventRowProps {
  readonly event: SentEvent
  /** How long after the beginning of the log it was kept. */
  readonly elapsed: string
  /** The step of the flow that it belongs to. */
  readonly flowStep: string | undefined
  /** How long the call took whose outcome it is: call and outcome may be kept at one instant, when both are known. */
  readonly tookMs: number | null
  readonly isOpen: boolean
  readonly onChoose: (isOpen: boolean) => void
  /** Nothing for who may not fork. */
  readonly onFork?: () => void
}

export const EventRow = (props: EventRowProps): ReactNode => {
  const { event, elapsed, flowStep, tookMs, isOpen, onChoose, onFork } = props
  return (
    <div className="border-b border-line py-1">
      <div className="flex items-baseline gap-x-2">
        <button
          type="button"
          aria-expanded={isOpen}
          onClick={() => onChoose(!isOpen)}
          className="flex min-w-0 grow flex-wrap items-baseline gap-x-3 rounded px-2 py-2 text-left text-sm hover:bg-sunken"
        >
          <Visible text={event.type} />
          {flowStep !== undefined && (
            <span className="text-xs text-leaf">
              <Visible text={flowStep} />
            </span>
          )}
          <span className="min-w-0 grow basis-40 truncate text-xs text-ink-soft">
            <Visible text={eventWords(event)} />
          </span>
          <span data-took-ms={tookMs} className="text-2xs text-ink-faint">
            {elapsed}
            {tookMs !== null && `, took ${durationText(tookMs)}`}, <TimeAgo instant={event.timestamp} />
          </span>
        </button>
        <span className="flex shrink-0 items-baseline font-mono text-2xs text-ink-faint">
          #{eventNumber(event.id)}
          <CopyButton text={event.id} label={`id of event ${eventNumber(event.id)}`} />
        </span>
      </div>
      {isOpen && (
        <div className="px-2 pb-2">
          <JsonView label={`Event ${event.id}`} value={event} />
          {onFork !== undefined && (
            <p className="mt-2">
              <Button size="small" onClick={onFork}>
                Fork from here
              </Button>
            </p>
          )}
        </div>
      )}
    </div>
  )
}

/** The number of an event of a context, which ends its id. */
export const eventNumber = (id: string): number => Number(id.slice(id.lastIndexOf(":") + 1))
