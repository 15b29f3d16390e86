/**
 * The graph: a search, and what it finds as a list and as a picture.
 */
import { type ReactNode, useState } from "react"
import { useConsole } from "../frame/console-context.tsx"
import { Button } from "../parts/button.tsx"
import { type Choice, FilterBar, type Filter } from "../parts/filter-bar.tsx"
import { lazyPart } from "../parts/lazy-part.tsx"
import { PageHeader } from "../parts/page-header.tsx"
import { Skeleton } from "../parts/skeleton.tsx"
import { type Tab, Tabs } from "../parts/tabs.tsx"
import { TimeAgo, useNow } from "../parts/time-ago.tsx"
import { useAddress } from "../parts/use-address.ts"
import { Visible } from "../parts/visible.tsx"
import { operatorWords } from "./conditions.ts"
import { ImportProgress } from "./import-progress.tsx"
import { NewObject } from "./new-object.tsx"
import { ObjectList } from "./object-list.tsx"
import { ordersOf, useGraphSearch } from "./use-graph-search.ts"

/** What draws is large, and loaded by who wants a picture. */
const GraphCanvas = lazyPart(() => import("./graph-canvas.tsx"), "GraphCanvas", {
  fetching: () => <Skeleton label="Loading graph view …" />,
  missing: (_, again) => (
    <div role="alert" data-fault="notFetched" className="grid max-w-prose justify-items-start gap-3">
      <p className="text-sm text-pretty text-ink-soft">
        The graph view could not be loaded from the server. Use the list instead.
      </p>
      <Button onClick={again}>Try again</Button>
    </div>
  )
})

const filtersOf = (orders: ReadonlyArray<Choice>): ReadonlyArray<Filter> => [
  { type: "text", name: "q", label: "Search", hint: "Search keys and properties" },
  { type: "text", name: "type", label: "Type", hint: "Exact type" },
  { type: "text", name: "where", label: "Properties", hint: "license=MIT size>=3" },
  { type: "time", name: "asOf", label: "As of" },
  { type: "order", name: "sort", label: "Order", choices: orders }
]

export const GraphPage = (): ReactNode => {
  const { canAnswer } = useConsole()
  const [isMaking, setIsMaking] = useState(false)
  const [{ q }] = useAddress()
  const { asOf, faults } = useGraphSearch()
  const now = useNow()
  return (
    <>
      <PageHeader title="Graph" lead="Objects and relationships in this project.">
        {canAnswer && <Button onClick={() => setIsMaking(true)}>New object</Button>}
      </PageHeader>
      <ImportProgress />
      <FilterBar label="Search the graph" filters={filtersOf(ordersOf(q, asOf))} />
      {faults.length > 0 && (
        <div role="alert" className="mb-4 text-sm text-removed-ink">
          {faults.map((fault) => (
            <p key={fault}>
              <Visible text={fault} />
            </p>
          ))}
          <ul aria-label="Conditions" className="mt-1 list-disc pl-5 text-ink-soft">
            {Object.entries(operatorWords).map(([sign, means]) => (
              <li key={sign}>
                <code>{sign}</code> {means}
              </li>
            ))}
          </ul>
        </div>
      )}
      {/* The graph as it will be is refused, and the refusal stands in its place. */}
      {asOf !== undefined && Date.parse(asOf) <= now && faults.length === 0 && (
        <p role="status" className="mb-4 text-sm text-ink-soft">
          The graph as of <TimeAgo instant={asOf} />. Rows open the current version of the object.
        </p>
      )}
      <Tabs label="Views of the graph" tabs={views} />
      {isMaking && <NewObject onClose={() => setIsMaking(false)} />}
    </>
  )
}

const views: ReadonlyArray<Tab> = [
  { id: "list", title: "List", content: () => <ObjectList /> },
  { id: "picture", title: "Graph view", content: () => <GraphCanvas /> }
]
