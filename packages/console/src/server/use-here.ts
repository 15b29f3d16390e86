/**
 * Whether whoever pressed something is still where they pressed it, once it is done.
 */
import { useRouter } from "@tanstack/react-router"
import { useCallback, useEffect, useRef } from "react"

/** Where something was pressed. */
export interface Pressed {
  /** Whether what was pressed is still drawn. */
  readonly isDrawn: () => boolean
  /** Whether its page is still there: what was pressed may have gone from it by what it did. */
  readonly isHere: () => boolean
}

/** Called at the press. */
export const useHere = (): (() => Pressed) => {
  const { history } = useRouter()
  const drawn = useRef(false)
  useEffect(() => {
    drawn.current = true
    return () => {
      drawn.current = false
    }
  }, [])
  return useCallback(() => {
    const { href, pathname } = history.location
    return {
      isDrawn: () => drawn.current,
      isHere: () => (drawn.current ? history.location.pathname === pathname : history.location.href === href)
    }
  }, [history])
}
