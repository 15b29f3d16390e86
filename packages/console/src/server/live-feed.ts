/**
 * The project's event stream, used as a bell: something changed, read again.
 *
 * What an event says is not looked at; the lists are the truth and are read
 * whole. The stream is opened again whenever it ends, fails or falls silent,
 * each time after a longer pause, and goes on after the last event it saw.
 */
import { Effect, Queue, Stream } from "effect"
import { limits } from "../limits.ts"
import { Unreachable } from "./problem.ts"
import { answerOf } from "./request.ts"

export type FeedState = "connecting" | "live" | "lost"

export interface FeedListener {
  readonly onState: (state: FeedState) => void
  /** Called at most once per `wakeUpPauseMs`, however many events come. */
  readonly onWakeUp: () => void
}

/** Follows a project's feed until it is interrupted. */
export const followFeed = Effect.fnUntraced(function* (projectId: string, listener: FeedListener) {
  const bell = yield* Queue.sliding<true>(1)
  yield* Effect.forkChild(ring(bell, listener))
  const place: Place = { lastEventId: undefined, hasHeard: false }
  let pauseMs: number = limits.feedRetryMs
  while (true) {
    place.hasHeard = false
    listener.onState("connecting")
    yield* listen(projectId, place, listener, bell).pipe(Effect.ignore)
    listener.onState("lost")
    if (place.hasHeard) pauseMs = limits.feedRetryMs
    yield* Effect.sleep(pauseMs)
    pauseMs = Math.min(pauseMs * 2, limits.maxFeedRetryMs)
  }
})

interface Place {
  lastEventId: string | undefined
  hasHeard: boolean
}

const ring = Effect.fnUntraced(function* (bell: Queue.Queue<true>, listener: FeedListener) {
  while (true) {
    yield* Queue.take(bell)
    listener.onWakeUp()
    yield* Effect.sleep(limits.wakeUpPauseMs)
  }
})

/** Reads one connection to its end. A comment line is the server's heartbeat and proves that it lives. */
const listen = Effect.fnUntraced(function* (
  projectId: string,
  place: Place,
  listener: FeedListener,
  bell: Queue.Queue<true>
) {
  const response = yield* answerOf(`/api/projects/${encodeURIComponent(projectId)}/events`, {
    headers: {
      accept: "text/event-stream",
      ...(place.lastEventId !== undefined && { "last-event-id": place.lastEventId })
    }
  })
  const { body } = response
  const isFeed = response.ok && response.headers.get("content-type")?.startsWith("text/event-stream") === true
  if (!isFeed || body === null) return
  listener.onState("live")
  // What happened between two connections rang no bell.
  if (place.lastEventId !== undefined) yield* Queue.offer(bell, true)
  yield* Stream.fromReadableStream({
    evaluate: () => body,
    onError: (cause) => new Unreachable({ cause })
  }).pipe(
    Stream.timeout(limits.feedSilenceMs),
    Stream.decodeText,
    Stream.splitLines,
    Stream.runForEach((line) => {
      place.hasHeard = true
      if (line.startsWith("id:")) place.lastEventId = line.slice(3).trim()
      return line.startsWith("data:") ? Queue.offer(bell, true) : Effect.void
    })
  )
})
