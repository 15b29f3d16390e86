/**
 * The keyboard goes on from the page's content when what had the focus is gone.
 *
 * A button that has done its work may leave with what it was about. A browser
 * then gives the focus to the body, from where Tab begins at the top of the page.
 */
import { type RefObject, useEffect } from "react"
import { isDialogOpen } from "../keys/is-typing.ts"

/** `content` gets the focus; what opens and closes over it minds its own. */
export const useKeptFocus = (content: RefObject<HTMLElement | null>): void => {
  useEffect(() => {
    let focused: EventTarget | null = null
    const follow = ({ target }: FocusEvent) => {
      focused = target
    }
    const seen = new MutationObserver(() => {
      if (document.activeElement !== document.body || isDialogOpen()) return
      if (!(focused instanceof Node) || focused.isConnected) return
      focused = null
      content.current?.focus({ preventScroll: true })
    })
    document.addEventListener("focusin", follow)
    seen.observe(document.body, { childList: true, subtree: true })
    return () => {
      document.removeEventListener("focusin", follow)
      seen.disconnect()
    }
  }, [content])
}
