/**
 * Server-sent events from a log: everything after an id, then what comes.
 *
 * Flow: **http** → graph → outbox → dispatch → run → tool → task
 *
 * The log is read again after each wake-up, so a lost wake-up costs a second and
 * no event; ids are the log's own numbers, so a client that reconnects with
 * Last-Event-ID misses nothing and gets nothing twice. A slow client slows only
 * its own reading: nothing is buffered for it but one page.
 */
import { Effect, Option, type Queue, Stream } from "effect"
import { HttpServerRequest, HttpServerResponse } from "effect/http"
import { httpLimits } from "../limits.ts"
import { nextWakeUp, type Topic, WakeUps } from "../outbox/wake-ups.ts"

/** One event of a stream; an ephemeral one has no number. */
export interface SseEvent {
  readonly number: number | undefined
  readonly name: string
  readonly json: unknown
}

export interface SseSource<R> {
  readonly topic: Topic
  /** The next events after a number, in order. */
  readonly read: (after: number, limit: number) => Effect.Effect<ReadonlyArray<SseEvent>, never, R>
  /** Whether the log can still grow; asked when there is nothing to read. */
  readonly isOver?: Effect.Effect<boolean, never, R>
  /** What passes by and is not kept. */
  readonly ephemeral?: Stream.Stream<SseEvent>
}

/** Whether the client asks for a stream. */
export const wantsStream = Effect.map(HttpServerRequest.HttpServerRequest, (request) =>
  (request.headers["accept"] ?? "").includes("text/event-stream")
)

/** Where to begin: Last-Event-ID if it is a number of ours, else the given place. */
export const startAfter = (given: number | undefined) =>
  Effect.map(HttpServerRequest.HttpServerRequest, (request) => {
    const last = request.headers["last-event-id"]
    return last !== undefined && /^\d{1,15}$/.test(last) ? Number(last) : (given ?? 0)
  })

/** Streams a source from a place on, with heartbeats while it is quiet. */
export const sseResponse = Effect.fn("sseResponse")(function* <R>(source: SseSource<R>, after: number) {
  const wakeUps = yield* WakeUps
  const events = Stream.unwrap(
    Effect.map(wakeUps.listen(source.topic), (mailbox) => follow(source, after, mailbox))
  )
  const all = source.ephemeral ? Stream.merge(events, source.ephemeral, { haltStrategy: "left" }) : events
  const heartbeat = Stream.map(Stream.tick(httpLimits.heartbeatIntervalMs), () => ": heartbeat\n\n")
  const text = Stream.merge(Stream.map(all, format), heartbeat, { haltStrategy: "left" })
  const context = yield* Effect.context<R>()
  return HttpServerResponse.stream(
    Stream.provideContext(Stream.encodeText(Stream.prepend(text, ["retry: 1000\n\n"])), context),
    {
      contentType: "text/event-stream",
      headers: { "cache-control": "no-cache, no-transform", "x-accel-buffering": "no" }
    }
  )
})

/** Pages of the log, one after the other; waits for a wake-up where there is none. */
const follow = <R>(
  source: SseSource<R>,
  after: number,
  mailbox: Queue.Dequeue<void>
): Stream.Stream<SseEvent, never, R> =>
  Stream.paginate(
    after,
    Effect.fnUntraced(function* (from: number) {
      const isOver = source.isOver ? yield* source.isOver : false
      const events = yield* source.read(from, httpLimits.streamPageEvents)
      const last = events.at(-1)?.number
      if (last !== undefined) return [events, Option.some(last)] as const
      if (isOver) return [events, Option.none<number>()] as const
      yield* nextWakeUp(mailbox, httpLimits.streamPollIntervalMs)
      return [events, Option.some(from)] as const
    })
  )

const format = (event: SseEvent): string =>
  `${event.number === undefined ? "" : `id: ${event.number}\n`}event: ${event.name}\ndata: ${JSON.stringify(event.json)}\n\n`
