/**
 * A page whose thing is not there to be shown: still being read, or why not and where to go on.
 */
import { Link } from "@tanstack/react-router"
import type { ReactNode } from "react"
import { Failure } from "./failure.tsx"
import { PageHeader } from "./page-header.tsx"
import { Skeleton } from "./skeleton.tsx"

interface NotShownProps {
  /** What the page would be of: `Run`. */
  readonly title: string
  /** Null while it is being read. */
  readonly error: unknown
  /** What is said while it is read. */
  readonly reading: string
  /** Where all of its kind are. */
  readonly to: "/runs" | "/graph" | "/agents" | "/chains" | "/live"
  /** What is there: `All runs`. */
  readonly way: string
}

export const NotShown = ({ title, error, reading, to, way }: NotShownProps): ReactNode => (
  <>
    <PageHeader title={title} />
    {error === null ? (
      <Skeleton label={reading} />
    ) : (
      <>
        <Failure error={error} />
        <p className="text-sm">
          <Link to={to} className="font-medium text-leaf underline-offset-2 hover:underline">
            {way}
          </Link>
        </p>
      </>
    )}
  </>
)
