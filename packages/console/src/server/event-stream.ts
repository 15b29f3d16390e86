/**
 * Follows a stream of server-sent events through cuts: nothing is lost, and nothing comes twice.
 *
 * The stream is opened again whenever it ends, fails or falls silent, each
 * time after a longer pause, and goes on after the last event it has seen.
 * Where the network goes or comes it is opened anew at once: an open stream
 * learns late that nobody is there any more, a new one tells.
 */
import { Effect, Stream } from "effect"
import { limits } from "../limits.ts"
import { networkMoved } from "./network-moved.ts"
import { Unreachable } from "./problem.ts"
import { answerOf } from "./request.ts"

export type StreamState = "connecting" | "live" | "lost"

export interface StreamEvent {
  readonly id: string
  readonly name: string
  readonly text: string
}

/** How far a reader has come; keep it to go on there later. */
export interface Place {
  lastEventId: string | undefined
}

export interface StreamListener {
  readonly onState: (state: StreamState) => void
  readonly onEvent: (event: StreamEvent) => void
  /** The stream is open again after a cut; what happened meanwhile was missed. */
  readonly onResumed?: () => void
}

/** Follows until it is interrupted. */
export const followStream = Effect.fnUntraced(function* (
  path: string,
  place: Place,
  listener: StreamListener
) {
  let pauseMs: number = limits.feedRetryMs
  const hearing = { hasHeard: false, wasOpen: place.lastEventId !== undefined }
  while (true) {
    hearing.hasHeard = false
    listener.onState("connecting")
    const hasMoved = yield* Effect.raceFirst(
      Effect.as(Effect.ignore(listen(path, place, listener, hearing)), false),
      Effect.as(networkMoved, true)
    )
    if (hasMoved) continue
    listener.onState("lost")
    if (hearing.hasHeard) pauseMs = limits.feedRetryMs
    yield* Effect.raceFirst(Effect.sleep(pauseMs), networkMoved)
    pauseMs = Math.min(pauseMs * 2, limits.maxFeedRetryMs)
  }
})

/** Reads one connection to its end. A comment line is the server's heartbeat and proves that it lives. */
const listen = Effect.fnUntraced(function* (
  path: string,
  place: Place,
  listener: StreamListener,
  hearing: { hasHeard: boolean; wasOpen: boolean }
) {
  const response = yield* answerOf(path, {
    headers: {
      accept: "text/event-stream",
      ...(place.lastEventId !== undefined && { "last-event-id": place.lastEventId })
    }
  })
  const { body } = response
  const isStream =
    response.ok && response.headers.get("content-type")?.startsWith("text/event-stream") === true
  if (!isStream || body === null) return
  listener.onState("live")
  // Also where the cut came before the server said where it begins: what such a cut hid is not brought.
  if (hearing.wasOpen) listener.onResumed?.()
  hearing.wasOpen = true
  const read = eventReader(place)
  yield* linesOf(body).pipe(
    Stream.runForEach((line) =>
      Effect.sync(() => {
        hearing.hasHeard = true
        const event = read(line)
        if (event !== undefined) listener.onEvent(event)
      })
    )
  )
})

/** The lines of a stream, which ends when it is silent for too long. */
export const linesOf = (body: ReadableStream<Uint8Array>): Stream.Stream<string, Unreachable> =>
  Stream.fromReadableStream({
    evaluate: () => body,
    onError: (cause) => new Unreachable({ cause })
  }).pipe(Stream.timeout(limits.feedSilenceMs), Stream.decodeText, Stream.splitLines)

/**
 * Puts lines together to events: an empty line ends one. What a cut left half is never told.
 *
 * **Details** The place moves with each id, also with one that comes without an event: a stream opens with where it begins.
 */
export const eventReader = (
  place: Place = { lastEventId: undefined }
): ((line: string) => StreamEvent | undefined) => {
  let id = ""
  let name = "message"
  let texts: Array<string> = []
  return (line) => {
    if (line === "") {
      const event = texts.length === 0 ? undefined : { id, name, text: texts.join("\n") }
      if (id !== "") place.lastEventId = id
      id = ""
      name = "message"
      texts = []
      return event
    }
    const [, field = "", value = ""] = /^([^:]*):? ?([\s\S]*)$/.exec(line) ?? []
    if (field === "id") id = value
    else if (field === "event") name = value
    else if (field === "data") texts.push(value)
    return undefined
  }
}
