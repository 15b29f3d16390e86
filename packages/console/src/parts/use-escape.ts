/**
 * Gives Escape to the dialog on top, whatever else is drawn meanwhile.
 *
 * Radix gives it to what was drawn last: a message that appeared beside a
 * dialog would have it, and the first press would do nothing to the dialog.
 */
import { type RefObject, useEffect, useRef } from "react"

/** **Gotchas** Radix must be told to leave the key alone. */
export const useEscape = (
  isOpen: boolean,
  content: RefObject<HTMLElement | null>,
  onEscape: () => void
): void => {
  const latest = useRef(onEscape)
  useEffect(() => {
    latest.current = onEscape
  })
  useEffect(() => {
    if (!isOpen) return
    const listen = (event: KeyboardEvent) => {
      const isOnTop = [...document.querySelectorAll("[role=dialog]")].at(-1) === content.current
      if (event.key !== "Escape" || event.isComposing || !isOnTop) return
      event.preventDefault()
      latest.current()
    }
    document.addEventListener("keydown", listen, { capture: true })
    return () => document.removeEventListener("keydown", listen, { capture: true })
  }, [isOpen, content])
}

export const leaveEscape = (event: Event): void => event.preventDefault()
