/**
 * The graph: a search, and what it finds as a list and as a picture.
 */
import { lazy, type ReactNode, Suspense, useState } from "react"
import { useConsole } from "../frame/console-context.tsx"
import { Button } from "../parts/button.tsx"
import { FilterBar, type Filter } from "../parts/filter-bar.tsx"
import { PageHeader } from "../parts/page-header.tsx"
import { Skeleton } from "../parts/skeleton.tsx"
import { type Tab, Tabs } from "../parts/tabs.tsx"
import { NewObject } from "./new-object.tsx"
import { ObjectList } from "./object-list.tsx"

/** What draws is large, and loaded by who wants a picture. */
const GraphCanvas = lazy(() =>
  import("./graph-canvas.tsx").then((module) => ({ default: module.GraphCanvas }))
)

const filters: ReadonlyArray<Filter> = [
  { type: "text", name: "q", label: "Search", hint: "Words in keys and properties" },
  { type: "text", name: "type", label: "Type", hint: "Type, exactly" }
]

export const GraphPage = (): ReactNode => {
  const { canAnswer } = useConsole()
  const [isMaking, setIsMaking] = useState(false)
  return (
    <>
      <PageHeader title="Graph" lead="What the team knows: objects, and how they are related.">
        {canAnswer && <Button onClick={() => setIsMaking(true)}>New object</Button>}
      </PageHeader>
      <FilterBar label="Search the graph" filters={filters} />
      <Tabs label="Views of the graph" tabs={views} />
      {isMaking && <NewObject onClose={() => setIsMaking(false)} />}
    </>
  )
}

const views: ReadonlyArray<Tab> = [
  { id: "list", title: "List", content: () => <ObjectList /> },
  {
    id: "picture",
    title: "Picture",
    content: () => (
      <Suspense fallback={<Skeleton label="Loading the picture …" />}>
        <GraphCanvas />
      </Suspense>
    )
  }
]
