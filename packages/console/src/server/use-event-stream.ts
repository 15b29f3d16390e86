/**
 * Any stream of the server for a component: a run's log, a context's, a chat's turn.
 */
import { Effect, Fiber } from "effect"
import { useEffect, useRef, useState } from "react"
import { useIsVisible } from "../parts/is-visible.ts"
import { followStream, type Place, type StreamEvent, type StreamState } from "./event-stream.ts"

/**
 * Follows `path` while the component is mounted and the tab is seen; undefined follows nothing.
 *
 * **Details** `after` names the last event that is known already; each later one is told once, in order, across cuts and
 * hidden tabs. **Gotchas** Another path begins anew, with the `after` of that moment.
 */
export const useEventStream = (
  path: string | undefined,
  onEvent: (event: StreamEvent) => void,
  after?: string
): StreamState => {
  const [state, setState] = useState<StreamState>("connecting")
  const latest = useRef(onEvent)
  const first = useRef(after)
  useEffect(() => {
    latest.current = onEvent
    first.current = after
  })
  const followed = useRef<{ readonly path: string; readonly place: Place }>(undefined)
  const isVisible = useIsVisible()
  useEffect(() => {
    if (path === undefined || !isVisible) return
    if (followed.current?.path !== path) followed.current = { path, place: { lastEventId: first.current } }
    const fiber = Effect.runFork(
      followStream(path, followed.current.place, {
        onState: setState,
        onEvent: (event) => latest.current(event)
      })
    )
    return () => {
      Effect.runFork(Fiber.interrupt(fiber))
    }
  }, [path, isVisible])
  return state
}

/** The stream of a run's log, from its first event on: what was written, then what is. */
export const runStreamPath = (projectId: string, runId: string): string =>
  `/api/projects/${encodeURIComponent(projectId)}/runs/${encodeURIComponent(runId)}/events?after=0`
