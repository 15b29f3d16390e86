/**
 * What is selected in the picture, in words: the object, and what it is related to.
 */
import type { GraphObject, Relationship } from "@tropism/domain/graph"
import { useQuery } from "@tanstack/react-query"
import { Link } from "@tanstack/react-router"
import type { ReactNode } from "react"
import { useConsole } from "../frame/console-context.tsx"
import { limits } from "../limits.ts"
import { Button } from "../parts/button.tsx"
import { Failure } from "../parts/failure.tsx"
import { Skeleton } from "../parts/skeleton.tsx"
import { Visible } from "../parts/visible.tsx"
import { neighborsQuery } from "../server/graph-queries.ts"
import { objectQuery } from "../server/queries.ts"
import { countText } from "../words/amounts.ts"
import { objectName } from "../words/object-name.ts"

interface SelectedObjectProps {
  readonly objectId: string
  readonly onSelect: (objectId: string) => void
  readonly onExpand: (objects: ReadonlyArray<GraphObject>, relationships: ReadonlyArray<Relationship>) => void
}

export const SelectedObject = ({ objectId, onSelect, onExpand }: SelectedObjectProps): ReactNode => {
  const { project } = useConsole()
  const { data: object, error } = useQuery(objectQuery(project.id, objectId))
  const { data: around } = useQuery(neighborsQuery(project.id, objectId))
  if (object === undefined) return error === null ? <Skeleton label="Loading …" /> : <Failure error={error} />
  if (object === null) return <p className="text-sm text-ink-soft">Deleted</p>
  const near = around?.objects.filter(({ distance }) => distance === 1) ?? []
  return (
    <>
      <h2 className="text-base font-semibold [overflow-wrap:anywhere]">
        <Visible text={objectName(object)} />
      </h2>
      <p className="mb-3 text-xs text-ink-faint">
        <Visible text={object.type} />, version {object.version}
      </p>
      <p className="mb-4">
        <Link
          to="/objects/$objectId"
          params={{ objectId }}
          className="text-sm font-medium text-leaf underline-offset-2 hover:underline"
        >
          Open object
        </Link>
      </p>
      {around !== undefined && (
        <>
          <h3 className="text-sm font-medium">
            {near.length === 0 ? "No relationships" : `Related to ${countText(near.length, "object")}`}
          </h3>
          <ul aria-label="Related objects" className="m-0 mt-1 list-none p-0">
            {near.slice(0, limits.maxNeighborsShown).map((other) => (
              <li key={other.id}>
                <Button
                  size="small"
                  weight="quiet"
                  className="max-w-full justify-start"
                  onClick={() => onSelect(other.id)}
                >
                  <span className="truncate">
                    <Visible text={objectName(other)} />
                  </span>
                  <span className="text-ink-faint">
                    <Visible text={other.type} />
                  </span>
                </Button>
              </li>
            ))}
          </ul>
          {near.length > 0 && (
            <p className="mt-3">
              <Button size="small" onClick={() => onExpand(around.objects, around.relationships)}>
                Expand neighbors
              </Button>
            </p>
          )}
          {(around.truncated || near.length > limits.maxNeighborsShown) && (
            <p className="mt-2 text-xs text-ink-soft">More relationships exist than are listed here.</p>
          )}
        </>
      )}
    </>
  )
}
