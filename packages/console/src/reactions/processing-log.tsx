/**
 * What an agent did with each thing that was meant for it, the newest first.
 */
import type { Agent } from "@tropism/domain/agent"
import type { ProcessingEntry } from "@tropism/domain/processing"
import type { ReactNode } from "react"
import { useConsole } from "../frame/console-context.tsx"
import { EmptyState } from "../parts/empty-state.tsx"
import { Failure } from "../parts/failure.tsx"
import { FilterBar, type Filter } from "../parts/filter-bar.tsx"
import { Skeleton } from "../parts/skeleton.tsx"
import { useAddress } from "../parts/use-address.ts"
import { agentPath } from "../server/agent-queries.ts"
import { usePagedList } from "../server/paged.ts"
import { EntryTable } from "./entry-table.tsx"
import { entryStatusChoices } from "./reaction-words.ts"

const filters: ReadonlyArray<Filter> = [
  { type: "choice", name: "status", label: "State", choices: entryStatusChoices }
]

export const ProcessingLog = ({ agent }: { readonly agent: Agent }): ReactNode => {
  const { project } = useConsole()
  const [{ status }] = useAddress()
  const list = usePagedList<ProcessingEntry>({
    projectId: project.id,
    key: ["processing-log", agent.id],
    path: agentPath(agent.id, "/processing-log"),
    parameters: { status }
  })
  return (
    <>
      <FilterBar label="Filter entries" filters={filters} />
      {list.error !== null && <Failure error={list.error} hasOlder={list.rows.length > 0} triesAgain />}
      {list.isPending && <Skeleton label="Loading log …" />}
      {!list.isPending && list.error === null && list.rows.length === 0 && (
        <EmptyState
          title={status === undefined ? "No events yet" : "No matching entries"}
          {...(status === undefined && {
            command: "npx tropism import objects.jsonl",
            does: "imports objects from a file for agents to react to"
          })}
        >
          {status === undefined
            ? "Events that match its trigger appear here with the result."
            : "Choose another state, or show all."}
        </EmptyState>
      )}
      {list.rows.length > 0 && <EntryTable label="Entries" list={list} />}
    </>
  )
}
