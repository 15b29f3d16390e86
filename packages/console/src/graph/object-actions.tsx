/**
 * What a person may do with an object as a whole: try an agent on it, delete it, bring it back, or remove it for good.
 */
import type { Provenance } from "@tropism/domain/provenance"
import { type ReactNode, useEffect, useRef, useState } from "react"
import { useConsole } from "../frame/console-context.tsx"
import { Button } from "../parts/button.tsx"
import { ConfirmDialog } from "../parts/confirm-dialog.tsx"
import { Failure } from "../parts/failure.tsx"
import { focusHeading } from "../parts/page-header.tsx"
import { objectPath } from "../server/graph-queries.ts"
import { useWrite } from "../server/use-write.ts"
import { visibleText } from "../words/visible-text.ts"
import { PurgeObject } from "./purge-object.tsx"
import { TryAgent } from "./try-agent.tsx"

interface ObjectActionsProps {
  readonly provenance: Provenance
  readonly name: string
}

export const ObjectActions = ({ provenance, name }: ObjectActionsProps): ReactNode => {
  const { canAnswer } = useConsole()
  const [isAsking, setIsAsking] = useState(false)
  const [isTrying, setIsTrying] = useState(false)
  const { run, isBusy, error, forget } = useWrite(
    ({ method }) => `${method === "DELETE" ? "Delete" : "Restore"} ${visibleText(name)}`,
    () => setIsAsking(false)
  )
  const { objectId, version, deleted } = provenance
  useHeadingAfter(deleted !== null, isBusy)
  if (!canAnswer)
    return (
      <span data-testid="editors-only" className="text-xs text-ink-faint">
        Only editors can change it.
      </span>
    )
  if (deleted !== null)
    return (
      <>
        {error !== null && <Failure error={error} />}
        <Button
          disabled={isBusy}
          onClick={() => run({ path: objectPath(objectId, "/restore"), method: "POST" })}
        >
          Restore
        </Button>
        <PurgeObject provenance={provenance} name={name} />
      </>
    )
  return (
    <>
      <Button data-testid="try-agent" onClick={() => setIsTrying(true)}>
        Test an agent
      </Button>
      {isTrying && <TryAgent objectId={objectId} onClose={() => setIsTrying(false)} />}
      <Button
        onClick={() => {
          forget()
          setIsAsking(true)
        }}
      >
        Delete
      </Button>
      <ConfirmDialog
        isOpen={isAsking}
        title={`Delete ${visibleText(name)}?`}
        verb="Delete it"
        staying="Keep it"
        isBusy={isBusy}
        error={error}
        onConfirm={() => run({ path: objectPath(objectId), method: "DELETE", ifMatch: version })}
        onClose={() => setIsAsking(false)}
      >
        Its relationships are deleted too, and agents that react to deletions are triggered. The history is
        kept, and you can restore it.
      </ConfirmDialog>
      <PurgeObject provenance={provenance} name={name} />
    </>
  )
}

/** What was pressed to delete or restore is gone afterwards: the keyboard goes on at the heading. */
const useHeadingAfter = (isDeleted: boolean, isBusy: boolean): void => {
  const asked = useRef<boolean>(undefined)
  useEffect(() => {
    if (isBusy) asked.current ??= isDeleted
    if (asked.current === undefined || asked.current === isDeleted) return
    asked.current = undefined
    focusHeading()
  }, [isDeleted, isBusy])
}
