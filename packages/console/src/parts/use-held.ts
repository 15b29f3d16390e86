/**
 * What stays as it is while it is pressed, so that a press ends on what it began on, whatever is read meanwhile.
 */
import { useEffect, useState } from "react"
import { useLater } from "./use-later.ts"

const ends = ["pointerup", "pointercancel", "dragend"] as const

/** The value as it was when a press began, until its click has been told; `press` goes to the element that is pressed. */
export const useHeld = <A>(value: A) => {
  const [held, setHeld] = useState<{ readonly value: A }>()
  const isHeld = held !== undefined
  const later = useLater(0)
  useEffect(() => {
    if (!isHeld) return
    const release = () => later(() => setHeld(undefined))
    // It may be lifted anywhere.
    ends.forEach((end) => window.addEventListener(end, release))
    return () => ends.forEach((end) => window.removeEventListener(end, release))
  }, [isHeld, later])
  return { held: held === undefined ? value : held.value, press: { onPointerDown: () => setHeld({ value }) } }
}
