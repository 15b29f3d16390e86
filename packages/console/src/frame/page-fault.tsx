/**
 * A page that cannot be shown: what happened, and a button that tries again; the frame around it stays.
 */
import { useQueryClient } from "@tanstack/react-query"
import { type ErrorComponentProps, useRouter } from "@tanstack/react-router"
import type { ReactNode } from "react"
import { Button } from "../parts/button.tsx"

interface PageFaultProps {
  /** Its code was not fetched, or it threw something. */
  readonly fault: "notFetched" | "failed"
  readonly title: string
  readonly children: ReactNode
  readonly onAgain: () => void
}

export const PageFault = ({ fault, title, children, onAgain }: PageFaultProps): ReactNode => (
  <div role="alert" data-fault={fault} className="grid max-w-prose justify-items-start gap-3">
    <h1 className="text-xl font-semibold tracking-tight">{title}</h1>
    <p className="text-sm text-pretty text-ink-soft">{children}</p>
    <Button onClick={onAgain}>Try again</Button>
  </div>
)

/** What the router shows in place of a page that threw something; what was thrown is in the browser's log. */
export const PageFailed = ({ reset }: ErrorComponentProps): ReactNode => {
  const router = useRouter()
  const queryClient = useQueryClient()
  return (
    <PageFault
      fault="failed"
      title="This page has crashed."
      onAgain={() => {
        // What the page could not show is asked for anew; what the frame reads stays.
        queryClient.removeQueries({ type: "inactive" })
        reset()
        void router.invalidate()
      }}
    >
      This is a bug in the console; your data is not affected. Other pages still work.
    </PageFault>
  )
}
