/**
 * Keeps the queries of one project fresh while its page is open.
 */
import { useQueryClient } from "@tanstack/react-query"
import { Effect, Fiber } from "effect"
import { useEffect, useState, useSyncExternalStore } from "react"
import { type FeedState, followFeed } from "./live-feed.ts"

/**
 * Follows the project's feed while the component is mounted; every bell reads what is on the page again.
 *
 * **Gotchas** A hidden tab hangs up: a browser grants one server six
 * connections, and a few forgotten tabs would take them all. What was missed
 * is read when the tab is shown again.
 */
export const useLiveFeed = (projectId: string): FeedState => {
  const queryClient = useQueryClient()
  const [state, setState] = useState<FeedState>("connecting")
  const isVisible = useSyncExternalStore(onVisibility, () => document.visibilityState === "visible")
  useEffect(() => {
    if (!isVisible) return
    const fiber = Effect.runFork(
      followFeed(projectId, {
        onState: setState,
        onWakeUp: () => {
          queryClient.invalidateQueries({
            queryKey: [projectId],
            predicate: ({ queryKey }) => queryKey[1] !== "history"
          })
        }
      })
    )
    return () => {
      Effect.runFork(Fiber.interrupt(fiber))
    }
  }, [projectId, queryClient, isVisible])
  return state
}

const onVisibility = (listener: () => void): (() => void) => {
  document.addEventListener("visibilitychange", listener)
  return () => document.removeEventListener("visibilitychange", listener)
}
