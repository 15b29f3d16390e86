/**
 * What woke a run: the object by its name, and what happened to it.
 */
import type { Run } from "@tropism/domain/run"
import { Link } from "@tanstack/react-router"
import type { ReactNode } from "react"
import { NamedObjectLink } from "../parts/named-object-link.tsx"
import { Visible } from "../parts/visible.tsx"
import { wakerOf } from "./run-words.ts"

interface WakerProps {
  readonly run: Run
  /** Whether the words behind the object lead to the event. */
  readonly leadsToEvent?: boolean
}

export const Waker = ({ run, leadsToEvent = false }: WakerProps): ReactNode => {
  const { before, object, what } = wakerOf(run)
  const [first] = run.trigger.events ?? []
  const words = <Visible text={what} />
  return (
    <>
      {before}
      {object !== null && (
        <>
          <NamedObjectLink object={object} />{" "}
        </>
      )}
      {leadsToEvent && first !== undefined ? (
        <Link
          to="/events/$eventId"
          params={{ eventId: first.id }}
          className="font-medium text-leaf underline-offset-2 hover:underline"
        >
          {words}
        </Link>
      ) : (
        words
      )}
    </>
  )
}
