/**
 * The project's event stream for the whole page: one connection that all who listen share.
 *
 * A listener hears each event once; queries are told what was touched, at most
 * once per `wakeUpPauseMs`, and are read again whole: they are the truth.
 */
import type { GraphEvent } from "@tropism/domain/graph"
import { Effect, Queue } from "effect"
import { limits } from "../limits.ts"
import { followStream, type Place, type StreamState } from "./event-stream.ts"

export interface FeedListener {
  readonly onState: (state: StreamState) => void
  readonly onEvent: (event: GraphEvent) => void
  /** What was heard since the last call; nothing when the feed was cut and nobody knows yet. */
  readonly onWakeUp: (events: ReadonlyArray<GraphEvent>) => void
}

export const feedPath = (projectId: string): string => `/api/projects/${encodeURIComponent(projectId)}/events`

/** Follows a project's feed from a place on until it is interrupted. */
export const followFeed = Effect.fnUntraced(function* (
  projectId: string,
  place: Place,
  listener: FeedListener
) {
  const bell = yield* Queue.sliding<true>(1)
  let heard: ReadonlyArray<GraphEvent> = []
  const ringing = Effect.gen(function* () {
    while (true) {
      yield* Queue.take(bell)
      const events = heard
      heard = []
      listener.onWakeUp(events)
      yield* Effect.sleep(limits.wakeUpPauseMs)
    }
  })
  yield* Effect.forkChild(ringing)
  yield* followStream(feedPath(projectId), place, {
    onState: listener.onState,
    onResumed: () => Queue.offerUnsafe(bell, true),
    onEvent: ({ text }) => {
      const event: GraphEvent = JSON.parse(text)
      heard = [...heard, event].slice(-limits.maxStreamEvents)
      listener.onEvent(event)
      Queue.offerUnsafe(bell, true)
    }
  })
})
