/**
 * What an object is related to, one line a relationship, and relating it to more.
 */
import type { GraphObject, Relationship } from "@tropism/domain/graph"
import type { Provenance } from "@tropism/domain/provenance"
import { useQuery } from "@tanstack/react-query"
import { Link } from "@tanstack/react-router"
import { type ReactNode, useState } from "react"
import { useConsole } from "../frame/console-context.tsx"
import { Button } from "../parts/button.tsx"
import { DataList } from "../parts/data-list.tsx"
import { EmptyState } from "../parts/empty-state.tsx"
import { Failure } from "../parts/failure.tsx"
import { Skeleton } from "../parts/skeleton.tsx"
import { Visible } from "../parts/visible.tsx"
import { neighborsQuery, relationshipsQuery } from "../server/graph-queries.ts"
import { useWrite } from "../server/use-write.ts"
import { objectName } from "../words/object-name.ts"
import { RelateObject } from "./relate-object.tsx"

export const ObjectRelations = ({ provenance }: { readonly provenance: Provenance }): ReactNode => {
  const { project, canAnswer } = useConsole()
  const [isRelating, setIsRelating] = useState(false)
  const { objectId, deleted } = provenance
  const relationships = useQuery(relationshipsQuery(project.id, objectId))
  const { data: around } = useQuery({ ...neighborsQuery(project.id, objectId), enabled: deleted === null })
  const removing = useWrite("Remove relationship")
  const objects = new Map(around?.objects.map((object) => [object.id, object]))
  if (relationships.data === undefined)
    return relationships.error === null ? (
      <Skeleton label="Loading relationships …" />
    ) : (
      <Failure error={relationships.error} />
    )
  const { items, nextCursor } = relationships.data
  const mayEdit = canAnswer && deleted === null
  return (
    <>
      {removing.error !== null && <Failure error={removing.error} />}
      {items.length === 0 && (
        <EmptyState title="No relationships">
          {deleted === null
            ? "Relationships created by people and agents appear here."
            : "A deleted object has no relationships. Restoring it restores them."}
        </EmptyState>
      )}
      {items.length > 0 && (
        <DataList label="Relationships" rows={items} keyOf={({ id }) => id} estimatedHeightPx={48}>
          {(relationship) => (
            <Line
              relationship={relationship}
              objectId={objectId}
              objects={objects}
              isBusy={removing.isBusy}
              {...(mayEdit && {
                onRemove: () =>
                  removing.run({
                    path: `relationships/${relationship.id}`,
                    method: "DELETE",
                    ifMatch: relationship.version
                  })
              })}
            />
          )}
        </DataList>
      )}
      {nextCursor !== null && (
        <p className="mt-3 text-sm text-ink-soft">Showing the latest {items.length}.</p>
      )}
      {mayEdit && (
        <p className="mt-4">
          <Button data-testid="relate" onClick={() => setIsRelating(true)}>
            Add relationship
          </Button>
        </p>
      )}
      {isRelating && <RelateObject objectId={objectId} onClose={() => setIsRelating(false)} />}
    </>
  )
}

interface LineProps {
  readonly relationship: Relationship
  readonly objectId: string
  /** What is around the object, by id. */
  readonly objects: ReadonlyMap<string, GraphObject>
  readonly isBusy: boolean
  readonly onRemove?: () => void
}

const Line = ({ relationship, objectId, objects, isBusy, onRemove }: LineProps): ReactNode => {
  const isOut = relationship.fromId === objectId
  const otherId = isOut ? relationship.toId : relationship.fromId
  const other = objects.get(otherId)
  return (
    <div className="flex flex-wrap items-center gap-x-4 gap-y-1 border-b border-line px-3 py-2 text-sm">
      <span className="text-xs text-ink-soft">
        {isOut ? "it " : "to this object: "}
        <span className="font-mono">
          <Visible text={relationship.type} />
        </span>
      </span>
      <Link
        to="/objects/$objectId"
        params={{ objectId: otherId }}
        className="min-w-0 grow font-medium [overflow-wrap:anywhere] hover:underline"
      >
        <Visible text={other === undefined ? `…${otherId.slice(-8)}` : objectName(other)} />
        {other !== undefined && (
          <span className="ml-2 text-xs font-normal text-ink-faint">
            <Visible text={other.type} />
          </span>
        )}
      </Link>
      {onRemove !== undefined && (
        <Button size="small" weight="quiet" disabled={isBusy} onClick={onRemove}>
          Remove<span className="sr-only"> relationship {relationship.type}</span>
        </Button>
      )}
    </div>
  )
}
