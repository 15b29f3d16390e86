/**
 * What failed for good: nobody tries it again unless a person says so.
 */
import type { Redriven } from "@tropism/api/processing-api"
import type { Agent } from "@tropism/domain/agent"
import type { ProcessingEntry } from "@tropism/domain/processing"
import type { ReactNode } from "react"
import { useConsole } from "../frame/console-context.tsx"
import { Button } from "../parts/button.tsx"
import type { Column } from "../parts/data-table.tsx"
import { EmptyState } from "../parts/empty-state.tsx"
import { Failure } from "../parts/failure.tsx"
import { Skeleton } from "../parts/skeleton.tsx"
import { useToasts } from "../parts/toasts.tsx"
import { agentPath } from "../server/agent-queries.ts"
import { usePagedList } from "../server/paged.ts"
import { useWrite } from "../server/use-write.ts"
import { EntryTable } from "./entry-table.tsx"
import { redrivenText } from "./reaction-words.ts"

type Answer = typeof Redriven.Type

export const DeadLetters = ({ agent }: { readonly agent: Agent }): ReactNode => {
  const { project, canAnswer } = useConsole()
  const show = useToasts()
  const list = usePagedList<ProcessingEntry>({
    projectId: project.id,
    key: ["dead-letters", agent.id],
    path: agentPath(agent.id, "/dead-letters")
  })
  const { run, isBusy, error } = useWrite<Answer>("Retry dead letters", (answer) =>
    show({ tone: "done", title: "Retried", sentence: redrivenText(answer) })
  )
  const redrive = (ids?: ReadonlyArray<string>) =>
    run({
      path: agentPath(agent.id, "/dead-letters/redrive"),
      method: "POST",
      body: ids === undefined ? {} : { ids }
    })
  if (list.isPending) return <Skeleton label="Loading dead letters …" />
  return (
    <>
      {list.error !== null && <Failure error={list.error} hasOlder={list.rows.length > 0} triesAgain />}
      {error !== null && <Failure error={error} />}
      {list.error === null && list.rows.length === 0 && (
        <EmptyState title="No dead letters">
          Events that failed their last attempt stay here until someone retries them.
        </EmptyState>
      )}
      {list.rows.length > 0 && (
        <div className="mb-4 flex flex-wrap items-center gap-3 text-sm text-ink-soft">
          {canAnswer ? (
            <>
              <Button weight="primary" disabled={isBusy} onClick={() => redrive()}>
                Retry all
              </Button>
              <span>Up to 100 at a time, oldest first, each in a new run.</span>
            </>
          ) : (
            "Only editors can retry them."
          )}
        </div>
      )}
      {list.rows.length > 0 && (
        <EntryTable
          label="Dead letters"
          list={list}
          {...(canAnswer && { action: againColumn(isBusy, (id) => redrive([id])) })}
        />
      )}
    </>
  )
}

const againColumn = (isBusy: boolean, onAgain: (id: string) => void): Column<ProcessingEntry> => ({
  title: "",
  width: "6.5rem",
  cell: ({ id }) => (
    <Button size="small" className="relative" disabled={isBusy} onClick={() => onAgain(id)}>
      Retry
    </Button>
  )
})
