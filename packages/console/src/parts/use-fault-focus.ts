/**
 * Leads the keyboard to the first field at fault, when a form was not taken; where no field is, to its button.
 */
import { type RefObject, useEffect, useRef } from "react"

/** `error` is what the form was not taken for; null where it was. */
export const useFaultFocus = (error: unknown): RefObject<HTMLFormElement | null> => {
  const form = useRef<HTMLFormElement>(null)
  useEffect(() => {
    if (error === null) return
    const first =
      form.current?.querySelector<HTMLElement>("[aria-invalid=true]") ??
      form.current?.querySelector<HTMLElement>("[type=submit]")
    first?.focus()
  }, [error])
  return form
}
