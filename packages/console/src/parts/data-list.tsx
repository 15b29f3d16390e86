/**
 * A long list of which only what is seen is drawn; more is read as the end comes near.
 *
 * Rows stay where they are while one is pressed. `j` and `k` go from row to row, Enter follows the row's link. The place is
 * the focus itself, so a list that refreshes does not move it.
 */
import { useWindowVirtualizer } from "@tanstack/react-virtual"
import { type ReactNode, type RefObject, useEffect, useLayoutEffect, useRef, useState } from "react"
import { limits } from "../limits.ts"
import { useKeys } from "../keys/use-keys.ts"
import { useHeld } from "./use-held.ts"

export interface DataListProps<A> {
  /** What is listed, in the plural: `Runs`. */
  readonly label: string
  readonly rows: ReadonlyArray<A>
  /** Other rows are on their way. */
  readonly isOlder?: boolean
  readonly keyOf: (row: A) => string
  /** Draws a row; its first link or button is what the keys go to. */
  readonly children: (row: A) => ReactNode
  readonly estimatedHeightPx?: number
  readonly hasMore?: boolean
  readonly onMore?: () => void
  /** The key of a row that is brought into view when the list is first drawn. */
  readonly keyInView?: string | undefined
}

export const DataList = <A,>(props: DataListProps<A>): ReactNode => {
  const { label, keyOf, children, estimatedHeightPx = 64, hasMore = false, isOlder = false, onMore } = props
  const { held: rows, press } = useHeld(props.rows)
  const list = useRef<HTMLDivElement>(null)
  const [top, setTop] = useState(0)
  useLayoutEffect(() => {
    const { current } = list
    if (current !== null) setTop(current.getBoundingClientRect().top + window.scrollY)
  }, [])
  // oxlint-disable-next-line react/incompatible-library -- its answers are used here and handed to nobody
  const virtual = useWindowVirtualizer({
    count: rows.length,
    estimateSize: () => estimatedHeightPx,
    overscan: limits.overscanRows,
    scrollMargin: top,
    getItemKey: (index) => {
      const row = rows[index]
      return row === undefined ? index : keyOf(row)
    }
  })
  const { keyInView } = props
  const [placeInView] = useState(() => rows.findIndex((row) => keyOf(row) === keyInView))
  useEffect(() => {
    if (placeInView >= 0) virtual.scrollToIndex(placeInView, { align: "center" })
  }, [placeInView, virtual, top])
  const shown = virtual.getVirtualItems()
  const last = shown.at(-1)?.index ?? -1
  const isNearEnd = hasMore && last >= rows.length - limits.overscanRows
  useEffect(() => {
    if (isNearEnd) onMore?.()
  }, [isNearEnd, onMore])
  const step = useSteps(list, rows.length, (index) => virtual.scrollToIndex(index, { align: "auto" }))
  useKeys(label, [
    { key: "j", shown: ["J"], means: "Next row", repeats: true, run: () => step(1) },
    { key: "k", shown: ["K"], means: "Previous row", repeats: true, run: () => step(-1) }
  ])
  return (
    <div
      ref={list}
      role="list"
      aria-label={label}
      aria-busy={isOlder}
      {...press}
      style={{ height: virtual.getTotalSize() }}
      className={`relative ${isOlder ? "before:absolute before:inset-x-0 before:-top-px before:h-0.5 before:animate-pulse before:bg-leaf" : ""}`}
    >
      {shown.map((item) => {
        const row = rows[item.index]
        if (row === undefined) return null
        return (
          <div
            key={item.key}
            ref={virtual.measureElement}
            role="listitem"
            aria-posinset={item.index + 1}
            aria-setsize={hasMore ? -1 : rows.length}
            data-index={item.index}
            className="absolute inset-x-0 top-0"
            style={{ transform: `translateY(${item.start - top}px)` }}
          >
            {children(row)}
          </div>
        )
      })}
    </div>
  )
}

/** Moves the focus from the row that has it; from outside the list to its first seen row. */
const useSteps = (
  list: RefObject<HTMLDivElement | null>,
  count: number,
  scrollTo: (index: number) => void
) => {
  const wanted = useRef<number>(undefined)
  const focusWanted = () => {
    const row = list.current?.querySelector(`[data-index="${wanted.current}"]`)
    const target = row?.querySelector<HTMLElement>("a[href], button")
    if (!target) return
    wanted.current = undefined
    target.focus({ preventScroll: true })
    row?.scrollIntoView({ block: "nearest" })
  }
  // A row that was not drawn yet gets the focus when it is.
  useEffect(() => {
    if (wanted.current !== undefined) focusWanted()
  })
  return (by: number) => {
    const focused = list.current?.querySelector<HTMLElement>("[data-index]:focus-within")
    const from = focused ? Number(focused.dataset["index"]) + by : 0
    const to = Math.min(Math.max(from, 0), count - 1)
    if (to < 0) return
    wanted.current = to
    scrollTo(to)
    focusWanted()
  }
}
