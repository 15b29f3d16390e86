/**
 * Objects that an agent has not handled as they are now, and running it for them.
 */
import type { Agent } from "@tropism/domain/agent"
import { batchMaxItems, type BatchTriggered, type PendingEvent } from "@tropism/domain/processing"
import { useQuery } from "@tanstack/react-query"
import { type ReactNode, useId } from "react"
import { useConsole } from "../frame/console-context.tsx"
import { Button } from "../parts/button.tsx"
import { DataTable, type Column } from "../parts/data-table.tsx"
import { EmptyState } from "../parts/empty-state.tsx"
import { Failure } from "../parts/failure.tsx"
import { Skeleton } from "../parts/skeleton.tsx"
import { useToasts } from "../parts/toasts.tsx"
import { Visible } from "../parts/visible.tsx"
import { agentPath } from "../server/agent-queries.ts"
import { pendingEventsQuery } from "../server/reaction-queries.ts"
import { useWrite } from "../server/use-write.ts"
import { cutText } from "../words/cut-text.ts"
import { namedText } from "../words/object-name.ts"
import { visibleText } from "../words/visible-text.ts"
import { batchText, whyWord } from "./reaction-words.ts"

export const PendingEvents = ({ agent }: { readonly agent: Agent }): ReactNode => {
  const { project, canAnswer } = useConsole()
  const show = useToasts()
  const note = useId()
  const { data, error } = useQuery(pendingEventsQuery(project.id, agent.id))
  const act = useWrite<BatchTriggered>(`Run ${visibleText(agent.name)}`, (answer) =>
    show({ tone: "done", title: "Run for unprocessed objects", sentence: batchText(answer) })
  )
  const runFor = (objectIds: ReadonlyArray<string>) =>
    act.run({ path: agentPath(agent.id, "/batch-trigger"), method: "POST", body: { objectIds } })
  if (data === undefined)
    return error === null ? (
      <Skeleton label="Loading unprocessed objects …" />
    ) : (
      <Failure error={error} triesAgain />
    )
  const atOnce = data.items.slice(0, batchMaxItems)
  return (
    <>
      {error !== null && <Failure error={error} hasOlder triesAgain />}
      {act.error !== null && <Failure error={act.error} />}
      {data.items.length === 0 && (
        <EmptyState title="All objects processed">
          Objects that match its trigger and whose current version it has not processed, including those from
          before it was enabled.
        </EmptyState>
      )}
      {data.items.length > 0 && (
        <div className="mb-4 flex flex-wrap items-center gap-3 text-sm text-ink-soft">
          {canAnswer ? (
            <>
              <Button
                weight="primary"
                aria-describedby={note}
                disabled={act.isBusy}
                onClick={() => runFor(atOnce.map(({ objectId }) => objectId))}
              >
                Run for {atOnce.length === 1 ? "it" : `${atOnce.length} objects`}
              </Button>
              <span id={note}>Each starts its own chain.</span>
            </>
          ) : (
            <span data-testid="editors-only">Only editors can run the agent for them.</span>
          )}
        </div>
      )}
      {data.items.length > 0 && (
        <DataTable
          label="Unprocessed objects"
          rows={data.items}
          keyOf={({ objectId }) => objectId}
          columns={
            canAnswer ? [...columns, runColumn(act.isBusy, (objectId) => runFor([objectId]))] : columns
          }
          linkTo={({ objectId }) => ({ to: "/objects/$objectId", params: { objectId } })}
        />
      )}
      {data.nextCursor !== null && (
        <p className="mt-4 text-sm text-ink-soft">
          More objects are not shown. Run the agent for some to see the rest.
        </p>
      )}
    </>
  )
}

const columns: ReadonlyArray<Column<PendingEvent>> = [
  {
    title: "Object",
    width: "minmax(0,1fr)",
    cell: ({ subject, version }) => (
      <>
        <Visible text={cutText(namedText(subject), 1, 120)} />{" "}
        <span className="text-xs font-normal text-ink-faint">version {version}</span>
      </>
    )
  },
  {
    title: "Reason",
    width: "minmax(0,2fr)",
    cell: ({ why, reason }) => (
      <span className="text-xs [overflow-wrap:anywhere]">
        <span className="font-medium">{whyWord(why)}</span>{" "}
        <span className="text-ink-soft">
          <Visible text={cutText(reason, 3, 300)} />
        </span>
      </span>
    )
  }
]

const runColumn = (isBusy: boolean, onRun: (objectId: string) => void): Column<PendingEvent> => ({
  title: "",
  width: "6.5rem",
  cell: ({ objectId }) => (
    <Button size="small" className="relative" disabled={isBusy} onClick={() => onRun(objectId)}>
      Run now
    </Button>
  )
})
