/**
 * Says when the list has just moved by itself: what was aimed at a card would then meet another one.
 *
 * For a moment decision keys are deaf (`use-inbox-keys.ts`) and the pointer meets
 * nothing in the list, whoever decided the card that left.
 */
import { type RefObject, useCallback, useLayoutEffect, useRef } from "react"
import { limits } from "../limits.ts"
import { useLater } from "../parts/use-later.ts"
import { readClock } from "../parts/read-clock.ts"

export interface Moving {
  /** Whether the list moved a moment ago. */
  readonly isMoving: () => boolean
  /** The element of the list, which the pointer passes through while it moves. */
  readonly list: RefObject<HTMLDivElement | null>
}

export const useMoving = (order: ReadonlyArray<string>): Moving => {
  const settledAtMs = useRef(0)
  const lastOrder = useRef(order)
  const list = useRef<HTMLDivElement>(null)
  const later = useLater(limits.settleMs)
  useLayoutEffect(() => {
    const before = lastOrder.current
    lastOrder.current = order
    if (before === order || before.length === 0) return
    settledAtMs.current = readClock() + limits.settleMs
    list.current?.style.setProperty("pointer-events", "none")
    later(() => list.current?.style.removeProperty("pointer-events"))
  }, [order, later])
  return { isMoving: useCallback(() => readClock() < settledAtMs.current, []), list }
}
