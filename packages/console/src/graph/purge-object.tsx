/**
 * Removes an object for good, when an admin has read what goes and what stays.
 */
import type { Provenance } from "@tropism/domain/provenance"
import { useNavigate } from "@tanstack/react-router"
import { type ReactNode, useState } from "react"
import { useConsole } from "../frame/console-context.tsx"
import { Button } from "../parts/button.tsx"
import { ConfirmDialog } from "../parts/confirm-dialog.tsx"
import { MovedNotice } from "../parts/moved-notice.tsx"
import { useToasts } from "../parts/toasts.tsx"
import { objectPath } from "../server/graph-queries.ts"
import { useWrite } from "../server/use-write.ts"
import { countText } from "../words/amounts.ts"
import { visibleText } from "../words/visible-text.ts"

interface PurgeObjectProps {
  readonly provenance: Provenance
  readonly name: string
}

export const PurgeObject = ({ provenance: { objectId, version }, name }: PurgeObjectProps): ReactNode => {
  const { isAdmin } = useConsole()
  const [isAsking, setIsAsking] = useState(false)
  /** The version of which the dialog speaks: nobody removes one that came while they read. */
  const [read, setRead] = useState(version)
  const isMoved = version !== read
  const show = useToasts()
  const navigate = useNavigate()
  const called = visibleText(name)
  const { run, isBusy, error, forget } = useWrite(`Delete ${called} permanently`, () => {
    show({ tone: "done", title: "Deleted", sentence: `${called} was deleted permanently.` })
    navigate({ to: "/graph" })
  })
  if (!isAdmin) return null
  const readNow = () => {
    forget()
    setRead(version)
  }
  return (
    <>
      <Button
        onClick={() => {
          readNow()
          setIsAsking(true)
        }}
      >
        Delete permanently
      </Button>
      <ConfirmDialog
        isOpen={isAsking}
        title={`Delete ${called} permanently?`}
        verb="Delete permanently"
        staying="Cancel"
        isBusy={isBusy}
        isReady={!isMoved}
        error={isMoved ? null : error}
        onConfirm={() => run({ path: objectPath(objectId, "?purge=true"), method: "DELETE", ifMatch: read })}
        onClose={() => setIsAsking(false)}
      >
        <p>This cannot be undone. It deletes:</p>
        <ul aria-label="Deleted" className="mt-1 mb-3 list-disc pl-5">
          <li>the object and its {countText(read, "version")}</li>
          <li>its relationships</li>
          <li>the content of its events</li>
        </ul>
        <p>These are kept:</p>
        <ul aria-label="Kept" className="mt-1 list-disc pl-5">
          <li>data about it in agents' runs, tool calls and tasks</li>
          <li>the record of who deleted it and when</li>
        </ul>
        {isMoved && (
          <div className="mt-3">
            <MovedNotice
              actions={
                <Button size="small" onClick={readNow}>
                  Reload
                </Button>
              }
            >
              Someone else changed it. It now has {countText(version, "version")}.
            </MovedNotice>
          </div>
        )}
      </ConfirmDialog>
    </>
  )
}
