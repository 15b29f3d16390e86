/**
 * What is wrong with a group of fields as a whole, which stands at none of them.
 */
import type { ReactNode } from "react"
import { useFieldLabel } from "../parts/field-labels.tsx"
import { faultAt } from "../server/problem.ts"
import type { At } from "./draft-fields.ts"

interface GroupFaultProps {
  /** What the group is called. */
  readonly label: string
  readonly place: ReturnType<At>
  /** What lies within and has fields of its own. */
  readonly apart?: ReadonlyArray<string>
}

export const GroupFault = ({ label, place: { pointer, error }, apart }: GroupFaultProps): ReactNode => {
  useFieldLabel(pointer, label)
  return (
    <p role="status" data-field={pointer} className="text-xs text-removed-ink">
      {faultAt(error, pointer, apart)}
    </p>
  )
}
