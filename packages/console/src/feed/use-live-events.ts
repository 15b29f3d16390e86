/**
 * The events of the feed for the live page: the newest at first, then each as it is committed.
 *
 * The shared feed tells what comes. Whenever it has been away, or an event
 * comes before the one that it follows, what lies between is read by its place:
 * places have no gaps, so nothing is lost and nothing comes twice.
 */
import type { GraphEvent } from "@tropism/domain/graph"
import { Effect, Fiber } from "effect"
import { useCallback, useEffect, useRef, useState } from "react"
import { limits } from "../limits.ts"
import { useFeedEvents, useFeedState } from "../server/feed-provider.tsx"
import { readBefore, readMissed } from "../server/feed-queries.ts"
import { gaplessPlace, placeOf, withEvents } from "./feed-items.ts"

export interface LiveEvents {
  /** The newest first. */
  readonly events: ReadonlyArray<GraphEvent>
  readonly isPending: boolean
  readonly error: unknown
  readonly hasOlder: boolean
  readonly readOlder: () => void
}

export const useLiveEvents = (projectId: string): LiveEvents => {
  const state = useFeedState()
  const [events, setEvents] = useState<ReadonlyArray<GraphEvent>>()
  const [error, setError] = useState<unknown>(null)
  const latest = useRef(events)
  useEffect(() => {
    latest.current = events
  })
  /** The newest place that was heard of; undefined before the first page. */
  const newest = useRef<number>(undefined)
  const add = useCallback((more: ReadonlyArray<GraphEvent>) => {
    setError(null)
    newest.current = Math.max(newest.current ?? 0, ...more.map(placeOf))
    setEvents((known = []) => withEvents(known, more, limits.maxStreamEvents))
  }, [])
  const reading = useRef<Fiber.Fiber<void>>(undefined)
  const stop = useCallback(() => {
    if (reading.current !== undefined) Effect.runFork(Fiber.interrupt(reading.current))
  }, [])
  /** Reads what stands behind the newest place without a gap; each call takes the place of the one before. */
  const catchUp = useCallback(() => {
    stop()
    reading.current = Effect.runFork(
      readMissed(projectId, gaplessPlace(latest.current ?? [])).pipe(
        Effect.match({ onSuccess: add, onFailure: (failure) => setError(failure) })
      )
    )
  }, [projectId, add, stop])
  useFeedEvents((event) => {
    const isNext = newest.current !== undefined && placeOf(event) <= newest.current + 1
    // Before the first page is there an event says nothing of the place from which the page is read.
    if (newest.current !== undefined) add([event])
    if (!isNext) catchUp()
  })
  useEffect(() => {
    if (state !== "lost") catchUp()
  }, [state, catchUp])
  useEffect(() => stop, [stop])
  const oldest = events?.at(-1)
  const readOlder = () => {
    if (oldest === undefined || placeOf(oldest) <= 1) return
    Effect.runFork(
      readBefore(projectId, placeOf(oldest)).pipe(
        Effect.match({ onSuccess: add, onFailure: (failure) => setError(failure) })
      )
    )
  }
  return {
    events: events ?? [],
    isPending: events === undefined,
    error,
    hasOlder: oldest !== undefined && placeOf(oldest) > 1 && (events?.length ?? 0) < limits.maxStreamEvents,
    readOlder
  }
}
