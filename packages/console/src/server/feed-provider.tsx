/**
 * Keeps what is on the page fresh, over one connection however many pages and panels listen.
 *
 * A hidden tab hangs up: a browser grants one server six connections, and a
 * few forgotten tabs would take them all. It goes on after the last event that
 * it has seen, so a listener misses none.
 */
import type { GraphEvent } from "@tropism/domain/graph"
import { useQueryClient } from "@tanstack/react-query"
import { Effect, Fiber } from "effect"
import {
  createContext,
  type ReactNode,
  useCallback,
  useContext,
  useEffect,
  useMemo,
  useRef,
  useState
} from "react"
import { limits } from "../limits.ts"
import { useIsVisible } from "../parts/is-visible.ts"
import type { Place, StreamState } from "./event-stream.ts"
import { principalQuery } from "./queries.ts"
import { followFeed } from "./live-feed.ts"
import { isTouched } from "./touched.ts"

type Listener = (event: GraphEvent) => void

interface Feed {
  readonly state: StreamState
  /** Hears every event from now on, until the answer is called. */
  readonly listen: (listener: Listener) => () => void
}

const FeedContext = createContext<Feed>({ state: "connecting", listen: () => () => {} })

interface FeedProviderProps {
  readonly projectId: string
  readonly children: ReactNode
}

/** **Gotchas** Give it the project as its `key`: the place in one project's feed means nothing in another's. */
export const FeedProvider = ({ projectId, children }: FeedProviderProps): ReactNode => {
  const queryClient = useQueryClient()
  const [state, setState] = useState<StreamState>("connecting")
  const listeners = useRef(new Set<Listener>())
  const place = useRef<Place>({ lastEventId: undefined })
  const isVisible = useIsVisible()
  useEffect(() => {
    if (!isVisible) return
    const fiber = Effect.runFork(
      followFeed(projectId, place.current, {
        onState: setState,
        onEvent: (event) => {
          for (const listener of listeners.current) listener(event)
        },
        onWakeUp: (events) => {
          // After a cut nobody knows what was missed, and it may have been for this that the server hung up.
          if (events.length === 0) queryClient.invalidateQueries({ queryKey: principalQuery.queryKey })
          queryClient.invalidateQueries({
            queryKey: [projectId],
            predicate: ({ queryKey, state }) => isTouched(queryKey, events) && !isLong(state.data)
          })
        }
      })
    )
    return () => {
      Effect.runFork(Fiber.interrupt(fiber))
    }
  }, [projectId, queryClient, isVisible])
  const listen = useCallback((listener: Listener) => {
    listeners.current.add(listener)
    return () => {
      listeners.current.delete(listener)
    }
  }, [])
  const feed = useMemo(() => ({ state, listen }), [state, listen])
  return <FeedContext value={feed}>{children}</FeedContext>
}

/** A list of many pages would be read whole; its head is a query of its own (`paged.ts`). */
const isLong = (read: unknown): boolean =>
  typeof read === "object" &&
  read !== null &&
  "pages" in read &&
  Array.isArray(read.pages) &&
  read.pages.length > limits.maxLivePages

/** Whether the page hears of changes at once. */
export const useFeedState = (): StreamState => useContext(FeedContext).state

/** Calls `onEvent` with every graph event of the project as it is committed, also with those of a cut. */
export const useFeedEvents = (onEvent: Listener): void => {
  const { listen } = useContext(FeedContext)
  const latest = useRef(onEvent)
  useEffect(() => {
    latest.current = onEvent
  })
  useEffect(() => listen((event) => latest.current(event)), [listen])
}
