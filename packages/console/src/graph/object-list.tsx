/**
 * What a search of the graph finds, as a list.
 */
import type { GraphObject } from "@tropism/domain/graph"
import { useQuery } from "@tanstack/react-query"
import { type ReactNode, useMemo } from "react"
import { useConsole } from "../frame/console-context.tsx"
import type { Column } from "../parts/data-table.tsx"
import { EmptyState } from "../parts/empty-state.tsx"
import { PagedTable } from "../parts/paged-table.tsx"
import { TimeAgo } from "../parts/time-ago.tsx"
import { Visible } from "../parts/visible.tsx"
import { agentNamesQuery } from "../server/agent-queries.ts"
import { usePagedList } from "../server/paged.ts"
import { cutText } from "../words/cut-text.ts"
import { objectName } from "../words/object-name.ts"
import { makerText, propertiesText } from "./object-words.ts"
import { useGraphSearch } from "./use-graph-search.ts"

export const ObjectList = (): ReactNode => {
  const { project } = useConsole()
  const { parameters, sort, isFiltered } = useGraphSearch()
  const { data: names } = useQuery(agentNamesQuery(project.id))
  const columns = useMemo(() => columnsOf(names), [names])
  const list = usePagedList<GraphObject>({
    projectId: project.id,
    key: ["objects", "list"],
    path: "objects",
    parameters: { ...parameters, sort }
  })
  return (
    <>
      <PagedTable
        label="Objects"
        list={list}
        reading="Loading graph …"
        columns={columns}
        linkTo={({ id }) => ({ to: "/objects/$objectId", params: { objectId: id } })}
        empty={<NoObjects isFiltered={isFiltered} />}
      />
    </>
  )
}

const NoObjects = ({ isFiltered }: { readonly isFiltered: boolean }): ReactNode =>
  isFiltered ? (
    <EmptyState title="No matching objects">Change the search or the time, or show all.</EmptyState>
  ) : (
    <EmptyState
      title="The graph is empty"
      command="npx tropism import package-lock.json"
      does="imports the packages of a project"
    >
      Objects created by people, agents and imports appear here.
    </EmptyState>
  )

/** Agents are called by their names. */
const columnsOf = (names: ReadonlyMap<string, string> | undefined): ReadonlyArray<Column<GraphObject>> => [
  {
    title: "Object",
    width: "minmax(0,1.2fr)",
    cell: (object) => <Visible text={cutText(objectName(object), 1, 120)} />
  },
  {
    title: "Type",
    width: "9rem",
    cell: ({ type }) => (
      <span className="text-xs text-ink-soft">
        <Visible text={type} />
      </span>
    )
  },
  {
    title: "Properties",
    width: "minmax(0,2fr)",
    cell: (object) => (
      <span className="line-clamp-2 text-xs [overflow-wrap:anywhere] text-ink-soft">
        <Visible text={propertiesText(object)} />
      </span>
    )
  },
  {
    title: "Changed",
    width: "9rem",
    cell: (object) => (
      <span className="block text-xs [overflow-wrap:anywhere] text-ink-soft">
        <TimeAgo instant={object.updatedAt} /> by{" "}
        <Visible text={makerText({ ...object, agentName: names?.get(object.actorId ?? "") ?? null })} />,
        version {object.version}
      </span>
    )
  }
]
