/**
 * Where the keyboard goes in a group of rows: into a row that was added, to the button that adds one after a row was removed.
 */
import { type RefObject, useEffect, useRef } from "react"

/** Goes to the group's element; its rows are fieldsets, and the button stands in a paragraph below them. */
export const useRowFocus = (count: number): RefObject<HTMLDivElement | null> => {
  const group = useRef<HTMLDivElement>(null)
  const known = useRef(count)
  useEffect(() => {
    const { current } = group
    const target =
      count > known.current
        ? [...(current?.querySelectorAll(":scope > fieldset") ?? [])].at(-1)?.querySelector("input, select")
        : count < known.current
          ? current?.querySelector(":scope > p > button")
          : undefined
    if (target instanceof HTMLElement) target.focus()
    known.current = count
  }, [count])
  return group
}
