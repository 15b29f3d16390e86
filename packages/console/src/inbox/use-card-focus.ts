/**
 * Brings the current suggestion into view and gives it the focus, when the state asks for it.
 *
 * The focus is never taken from a dialog or from a field outside the list.
 */
import { useEffect, useRef } from "react"
import type { InboxState } from "./inbox-state.ts"
import { cardElementId } from "./linked-card.ts"

export const useCardFocus = ({ currentId, focusRequests }: InboxState, isDialogOpen: boolean): void => {
  const answered = useRef(0)
  useEffect(() => {
    // A click makes a card current too, and must not find the page moved under it.
    if (focusRequests === answered.current || currentId === undefined || isDialogOpen) return
    answered.current = focusRequests
    const card = document.getElementById(cardElementId(currentId))
    if (card === null || isBusyElsewhere(card)) return
    card.focus({ preventScroll: true })
    card.scrollIntoView({ block: card.offsetHeight > window.innerHeight ? "start" : "nearest" })
  }, [focusRequests, currentId, isDialogOpen])
}

/** Whether the person's focus is in a field that has nothing to do with the list. */
export const isBusyElsewhere = (card: HTMLElement): boolean => {
  const active = document.activeElement
  return (
    active instanceof HTMLElement &&
    active.matches("input, select, textarea") &&
    !card.closest("main")?.contains(active)
  )
}
