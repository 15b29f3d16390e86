/**
 * Brings the card that a link leads to into view, and keeps it there while the page is still being drawn.
 *
 * What is read late stands above the card too and would push it away. Whoever
 * touches the page has it from then on.
 */
import { useEffect } from "react"
import { limits } from "../limits.ts"
import { useLater } from "../parts/use-later.ts"
import { cardElementId } from "./linked-card.ts"
import { isBusy } from "./use-card-focus.ts"

const touches = ["pointerdown", "touchstart", "wheel", "keydown"] as const

export const useLinkedInView = (taskId: string | undefined, isListed: boolean): void => {
  const later = useLater(limits.linkSettleMs)
  useEffect(() => {
    const card = taskId === undefined || !isListed ? null : document.getElementById(cardElementId(taskId))
    if (card === null) return
    if (!isBusy()) card.focus({ preventScroll: true })
    // It is told of every size at once, and of each that changes.
    const sizes = new ResizeObserver(() =>
      card.scrollIntoView({ block: card.offsetHeight > window.innerHeight / 2 ? "start" : "center" })
    )
    const leave = () => {
      sizes.disconnect()
      for (const touch of touches) window.removeEventListener(touch, leave, true)
    }
    sizes.observe(document.body)
    for (const touch of touches) window.addEventListener(touch, leave, { capture: true, passive: true })
    later(leave)
    return leave
  }, [taskId, isListed, later])
}
