/**
 * Brings the current card into view and gives it the focus, when the state asks for it; where none is left, the heading.
 *
 * The focus is never taken from a dialog, from a field in which somebody writes,
 * whichever card it is of, or from any field outside the list.
 */
import { useEffect, useRef } from "react"
import { isTyping } from "../keys/is-typing.ts"
import type { InboxState } from "./inbox-state.ts"
import { cardElementId } from "./linked-card.ts"

export const useCardFocus = ({ currentId, focusRequests }: InboxState, isDialogOpen: boolean): void => {
  const answered = useRef(0)
  useEffect(() => {
    // A click makes a card current too, and must not find the page moved under it.
    if (focusRequests === answered.current || isDialogOpen) return
    answered.current = focusRequests
    if (isBusy()) return
    if (currentId === undefined) return document.getElementById(headingId)?.focus()
    const card = document.getElementById(cardElementId(currentId))
    if (card === null) return
    card.focus({ preventScroll: true })
    card.scrollIntoView({ block: card.offsetHeight > window.innerHeight ? "start" : "nearest" })
  }, [focusRequests, currentId, isDialogOpen])
}

/** The element of the page's heading. */
export const headingId = "inbox-heading"

/** Whether the person writes, or is at a field that has nothing to do with the list. */
export const isBusy = (): boolean => {
  const active = document.activeElement
  return isTyping(active) || (active instanceof HTMLInputElement && active.closest("main") === null)
}
