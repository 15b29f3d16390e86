/**
 * Keeps the newest words in view for who is at them; who has scrolled up to read stays there until they come back or speak.
 */
import { type RefObject, useEffect, useRef } from "react"

/** What stands behind the words gets the answer; they are in view where it is. `size` grows with them, `spoken` names what was said last. */
export const useNewestInView = (
  size: number,
  spoken: string | undefined
): RefObject<HTMLDivElement | null> => {
  const end = useRef<HTMLDivElement>(null)
  const isThere = useRef(true)
  useEffect(() => {
    let before = window.scrollY
    const look = () => {
      // Words that came since the page scrolled last take nobody away from them: only who goes up leaves.
      isThere.current = isInView(end.current) || (isThere.current && window.scrollY >= before)
      before = window.scrollY
    }
    window.addEventListener("scroll", look, { passive: true })
    return () => window.removeEventListener("scroll", look)
  }, [])
  useEffect(() => {
    if (spoken !== undefined) isThere.current = true
  }, [spoken])
  useEffect(() => {
    if (size > 0 && isThere.current) end.current?.scrollIntoView({ block: "nearest" })
  }, [size])
  return end
}

/** Where the page ends nobody can go further. */
const isInView = (element: HTMLElement | null): boolean => {
  if (element === null) return false
  const { scrollHeight } = document.documentElement
  const covered = Number.parseFloat(getComputedStyle(element).scrollMarginBottom)
  return (
    element.getBoundingClientRect().bottom <= window.innerHeight - covered + tolerancePx ||
    window.scrollY + window.innerHeight >= scrollHeight - tolerancePx
  )
}

/** Browsers scroll by parts of a pixel. */
const tolerancePx = 2
