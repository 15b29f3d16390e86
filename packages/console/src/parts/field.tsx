/**
 * One field of a form: its name, what it means, and what the server found wrong with it.
 */
import { type ReactNode, useId } from "react"
import { useFieldLabel } from "./field-labels.tsx"
import { faultAt } from "../server/problem.ts"
import { visibleText } from "../words/visible-text.ts"

export interface FieldWords {
  readonly label: string
  /** What to write, in a sentence. */
  readonly hint?: ReactNode
  /** Where the value stands in what is sent: `/name`. */
  readonly pointer?: string
  /** Its name in the form, where it is not sent as it stands there. */
  readonly name?: string
  /** What lies within `pointer` and has a field of its own. */
  readonly apart?: ReadonlyArray<string>
  /** What sending failed with; its sentence about `pointer` is shown here. */
  readonly error?: unknown
  /** What is wrong with it before it is sent. */
  readonly fault?: string | undefined
}

interface FieldProps extends FieldWords {
  readonly children: (control: {
    readonly id: string
    readonly "aria-invalid": boolean
    readonly "aria-describedby": string
    readonly name: string | undefined
  }) => ReactNode
}

/** **Details** `children` draws the control with the attributes given. */
export const Field = ({
  label,
  hint,
  pointer,
  name,
  apart,
  error,
  fault: own,
  children
}: FieldProps): ReactNode => {
  const id = useId()
  useFieldLabel(pointer, label)
  const refused = pointer === undefined ? undefined : faultAt(error, pointer, apart)
  const fault = own === undefined ? refused : visibleText(own)
  return (
    <div data-field={pointer} className="min-w-0">
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
          "aria-describedby": `${id}-hint ${id}-fault`,
          name
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
