/**
 * A part of a form with its heading.
 */
import type { ReactNode } from "react"

interface FormSectionProps {
  readonly title: string
  readonly children: ReactNode
}

export const FormSection = ({ title, children }: FormSectionProps): ReactNode => (
  <fieldset className="m-0 grid gap-4 border-0 p-0">
    <legend className="mb-3 p-0 text-base font-semibold">{title}</legend>
    {children}
  </fieldset>
)
