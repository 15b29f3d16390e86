/**
 * One field of a form: its name, what it means, and what the server found wrong with it.
 */
import { type ReactNode, useId } from "react"
import { faultAt } from "../server/problem.ts"

export interface FieldWords {
  readonly label: string
  /** What to write, in a sentence. */
  readonly hint?: ReactNode
  /** Where the value stands in what is sent: `/name`. */
  readonly pointer?: string
  /** What sending failed with; its sentence about `pointer` is shown here. */
  readonly error?: unknown
}

interface FieldProps extends FieldWords {
  readonly children: (control: {
    readonly id: string
    readonly "aria-invalid": boolean
    readonly "aria-describedby": string
  }) => ReactNode
}

/** **Details** `children` draws the control with the attributes given. */
export const Field = ({ label, hint, pointer, error, children }: FieldProps): ReactNode => {
  const id = useId()
  const fault = pointer === undefined ? undefined : faultAt(error, pointer)
  return (
    <div className="min-w-0">
      <label htmlFor={id} className="text-sm font-medium">
        {label}
      </label>
      {hint !== undefined && (
        <p id={`${id}-hint`} className="text-xs text-ink-faint">
          {hint}
        </p>
      )}
      <div className="mt-1.5">
        {children({
          id,
          "aria-invalid": fault !== undefined,
          "aria-describedby": `${id}-hint ${id}-fault`
        })}
      </div>
      <p id={`${id}-fault`} role="status" className="text-xs text-removed-ink">
        {fault !== undefined && <span className="mt-1 block">{fault}</span>}
      </p>
    </div>
  )
}

export const controlClass =
  "w-full rounded-lg border border-line-strong bg-surface px-3 text-sm aria-invalid:border-removed-ink"
