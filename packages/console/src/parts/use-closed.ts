/**
 * Closes a form to typing while what stands in it is being sent: it goes when that is done, and so would what was typed.
 *
 * The focus stays where it is; a field that was disabled would lose it.
 */
import { type RefObject, useEffect } from "react"

export const useClosed = (form: RefObject<HTMLFormElement | null>, isClosed: boolean): void => {
  useEffect(() => {
    const { current } = form
    if (current === null || !isClosed) return
    const refuse = (event: Event) => event.preventDefault()
    current.addEventListener("beforeinput", refuse)
    return () => current.removeEventListener("beforeinput", refuse)
  }, [form, isClosed])
}
