/**
 * A replay of a run: whether its log is what the engine would write again, event by event.
 */
import type { Replay } from "@tropism/domain/replay"
import type { Run } from "@tropism/domain/run"
import { useQuery } from "@tanstack/react-query"
import { Link } from "@tanstack/react-router"
import { type ReactNode, useState } from "react"
import { useConsole } from "../frame/console-context.tsx"
import { Button } from "../parts/button.tsx"
import { Command } from "../parts/command.tsx"
import { DialogFrame } from "../parts/dialog-frame.tsx"
import { Failure } from "../parts/failure.tsx"
import { JsonView } from "../parts/json-view.tsx"
import { Skeleton } from "../parts/skeleton.tsx"
import { Visible } from "../parts/visible.tsx"
import { runReplayQuery } from "../server/run-queries.ts"
import { countText } from "../words/amounts.ts"

export const ReplayButton = ({ run }: { readonly run: Run }): ReactNode => {
  const [isOpen, setIsOpen] = useState(false)
  return (
    <>
      <Button onClick={() => setIsOpen(true)}>Replay</Button>
      {isOpen && <ReplayDialog run={run} onClose={() => setIsOpen(false)} />}
    </>
  )
}

interface ReplayDialogProps {
  readonly run: Run
  readonly onClose: () => void
}

const ReplayDialog = ({ run, onClose }: ReplayDialogProps): ReactNode => {
  const { project } = useConsole()
  const { data, error, isFetching, refetch } = useQuery({
    ...runReplayQuery(project.id, run.id),
    // Asked for by a press, so it is made at the press.
    staleTime: 0
  })
  return (
    <DialogFrame isOpen title="Replay of the log" onClose={onClose} returnsFocus>
      <div className="mt-4 grid gap-4 text-sm">
        <p className="text-ink-soft">
          Rebuilds each event from the ones before it and compares it with the log. No model or tool is called
          and nothing is written.
        </p>
        {error !== null && <Failure error={error} />}
        {data === undefined || isFetching ? (
          error === null && <Skeleton label="Replaying …" />
        ) : (
          <Verdict replay={data} onLeave={onClose} />
        )}
        <Command text={`npx tropism contexts replay ${run.contextName}`} />
        <p className="flex justify-end gap-2">
          <Button disabled={isFetching} onClick={() => void refetch()}>
            Replay again
          </Button>
          <Button weight="primary" onClick={onClose} data-first-focus>
            Done
          </Button>
        </p>
      </div>
    </DialogFrame>
  )
}

interface VerdictProps {
  readonly replay: Replay
  readonly onLeave: () => void
}

const Verdict = ({ replay, onLeave }: VerdictProps): ReactNode => {
  const { events, engineEvents, firstDifference } = replay
  if (firstDifference === undefined)
    return (
      <p role="status" data-replay="same" className="font-medium">
        Replay matches: {countText(events, "event")}, {engineEvents.toLocaleString("en")} written by the
        engine.
      </p>
    )
  const { eventId, detail, expected, found } = firstDifference
  return (
    <div role="status" data-replay="different" className="grid gap-3">
      <p className="font-medium text-removed-ink">Replay mismatch</p>
      <p className="[overflow-wrap:anywhere]">
        <Link
          to="."
          search={(before) => ({ ...before, tab: "log", event: eventId })}
          onClick={onLeave}
          className="font-medium text-leaf underline-offset-2 hover:underline"
        >
          <Visible text={eventId} />
        </Link>
        : <Visible text={detail} />
      </p>
      <JsonView label="Expected" value={expected} />
      <JsonView label="Actual" value={found} />
    </div>
  )
}
