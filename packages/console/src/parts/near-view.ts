/**
 * Whether an element has come near the visible part of the page, ever.
 *
 * Long lists draw the inside of a card only then: a thousand cards would take
 * seconds, and nobody sees more than a few. What was drawn stays drawn, so
 * nothing changes its height twice.
 */
import { type RefCallback, useCallback, useState } from "react"

/** How far outside the view an element counts as near. */
const margin = "1200px 0px"

const watched = new WeakMap<Element, () => void>()

const makeObserver = (): IntersectionObserver =>
  new IntersectionObserver(
    (entries) => {
      for (const { isIntersecting, target } of entries) if (isIntersecting) watched.get(target)?.()
    },
    { rootMargin: margin }
  )

/** One observer for all elements of the page, made when the first is watched. */
let shared: IntersectionObserver | undefined

export const useNearView = (isNearAtFirst: boolean): readonly [boolean, RefCallback<Element>] => {
  const [isNear, setIsNear] = useState(isNearAtFirst)
  const watch = useCallback(
    (element: Element | null) => {
      if (element === null || isNear) return
      shared ??= makeObserver()
      const observer = shared
      watched.set(element, () => setIsNear(true))
      observer.observe(element)
      return () => observer.unobserve(element)
    },
    [isNear]
  )
  return [isNear, watch]
}
