/**
 * Whether anybody can see the page: a hidden tab needs no connection and no fresh lists.
 */
import { useSyncExternalStore } from "react"

export const useIsVisible = (): boolean =>
  useSyncExternalStore(onVisibility, () => document.visibilityState === "visible")

const onVisibility = (listener: () => void): (() => void) => {
  document.addEventListener("visibilitychange", listener)
  return () => document.removeEventListener("visibilitychange", listener)
}
