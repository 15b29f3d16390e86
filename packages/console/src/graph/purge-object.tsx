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
  const { run, isBusy, error, forget } = useWrite(`Remove ${called} for good`, () => {
    show({ tone: "done", title: "Removed", sentence: `${called} is removed for good.` })
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
        Remove for good
      </Button>
      <ConfirmDialog
        isOpen={isAsking}
        title={`Remove ${called} for good?`}
        verb="Remove it for good"
        staying="Keep it"
        isBusy={isBusy}
        isReady={!isMoved}
        error={isMoved ? null : error}
        onConfirm={() => run({ path: objectPath(objectId, "?purge=true"), method: "DELETE", ifMatch: read })}
        onClose={() => setIsAsking(false)}
      >
        <p>Nobody can bring back what goes:</p>
        <ul aria-label="What goes" className="mt-1 mb-3 list-disc pl-5">
          <li>the object, and its {countText(read, "version")}</li>
          <li>its relationships</li>
          <li>what events say of it; that they happened stays</li>
        </ul>
        <p>This stays:</p>
        <ul aria-label="What stays" className="mt-1 list-disc pl-5">
          <li>what agents read of it or wrote about it, in their runs, tool calls and tasks</li>
          <li>that it was removed, by whom and when</li>
        </ul>
        {isMoved && (
          <div className="mt-3">
            <MovedNotice
              actions={
                <Button size="small" onClick={readNow}>
                  Read what goes now
                </Button>
              }
            >
              Somebody has changed it meanwhile. It has {countText(version, "version")} now.
            </MovedNotice>
          </div>
        )}
      </ConfirmDialog>
    </>
  )
}
