/**
 * Follows a live feed of the server (server-sent events) as a stream that survives a cut connection.
 *
 * After a cut it reconnects with `Last-Event-ID`, so no event is lost and none
 * comes twice; it gives up only after `limits.reconnectsInARow` failures in a
 * row, or at once when the server refuses. A feed is left by interrupting the
 * stream. What an event means is not judged here: the caller brings the schema.
 */
import { ContextEvent, TextDeltaEvent, UnknownEvent } from "@tropism/domain/context-event"
import { GraphEvent } from "@tropism/domain/graph"
import type { ProjectId, RunId } from "@tropism/domain/ids"
import { Duration, Effect, Result, Schedule, Schema, Stream } from "effect"
import { Sse } from "effect/encoding"
import { HttpClient, type HttpClientError, HttpClientRequest, type HttpClientResponse } from "effect/http"
import { type Connection, withCredential } from "./client.ts"
import { limits } from "./limits.ts"

/** One event of a feed: `id` is what `Last-Event-ID` continues after. */
export interface FeedEvent<A> {
  readonly id: string | undefined
  readonly data: A
}

export interface FollowOptions {
  /** Begins after this event; without it the server decides where a feed begins. */
  readonly lastEventId?: string | undefined
  /**
   * Whether the log behind the feed can be over. The server closes such a
   * connection, as it also does when it stops; so the feed ends when a
   * connection was closed in good order and had brought nothing.
   */
  readonly mayEnd?: boolean | undefined
}

/** The server does not let this caller read the feed, or does not know it. */
export class FeedRefused extends Schema.TaggedError<FeedRefused>()("FeedRefused", {
  status: Schema.Int,
  answer: Schema.String
}) {}

/** The server could not be reached any more. */
export class FeedLost extends Schema.TaggedError<FeedLost>()("FeedLost", {
  failures: Schema.Int,
  url: Schema.String
}) {}

/** An event is not what the contract says: client and server are of different versions. */
export class FeedUnreadable extends Schema.TaggedError<FeedUnreadable>()("FeedUnreadable", {
  url: Schema.String,
  reason: Schema.String
}) {}

export type FeedFailure = FeedRefused | FeedLost | FeedUnreadable

/** What a context's feed carries; the deltas of an answer that is being written are not kept and have no place in the log. */
export const ContextFeedEvent = Schema.Union([ContextEvent, TextDeltaEvent, UnknownEvent])
export type ContextFeedEvent = typeof ContextFeedEvent.Type

/** The graph events of a project. */
export const followGraphEvents = (connection: Connection, projectId: ProjectId, options?: FollowOptions) =>
  followEvents(connection, `/api/projects/${projectId}/events`, GraphEvent, options)

/** The context events of a run; the stream ends when the run has ended and all its events were seen. */
export const followRunEvents = (
  connection: Connection,
  projectId: ProjectId,
  runId: RunId,
  options?: FollowOptions
) =>
  followEvents(connection, `/api/projects/${projectId}/runs/${runId}/events`, ContextFeedEvent, {
    ...options,
    mayEnd: true
  })

/** The events of a context. */
export const followContextEvents = (
  connection: Connection,
  projectId: ProjectId,
  name: string,
  options?: FollowOptions
) =>
  followEvents(
    connection,
    `/api/projects/${projectId}/contexts/${encodeURIComponent(name)}/events`,
    ContextFeedEvent,
    options
  )

/** Follows the feed at a path, event by event, across as many connections as it takes. */
export const followEvents = <A, I>(
  connection: Connection,
  path: string,
  schema: Schema.Codec<A, I>,
  options?: FollowOptions
): Stream.Stream<FeedEvent<A>, FeedFailure, HttpClient.HttpClient> =>
  Stream.suspend(() => {
    const position: Position = {
      lastEventId: options?.lastEventId,
      connections: 0,
      failures: 0,
      reconnectMs: undefined,
      mayEnd: options?.mayEnd === true
    }
    const url = `${connection.url}${path}`
    const decode = Schema.decodeUnknownResult(Schema.fromJsonString(schema))
    return connectOnce(connection, url, position).pipe(
      Stream.retry(Schedule.forever),
      Stream.mapError(() => new FeedLost({ failures: position.failures, url })),
      Stream.mapEffect((item) =>
        Result.isFailure(item)
          ? Effect.fail(item.failure)
          : Effect.fromResult(readEvent(decode, url, item.success))
      ),
      Stream.tap((event) => Effect.sync(() => void (position.lastEventId = event.id ?? position.lastEventId)))
    )
  })

/** Where a feed stands between two connections. */
interface Position {
  lastEventId: string | undefined
  connections: number
  /** Connections that failed since one was last open. */
  failures: number
  /** The pause the server asked for with `retry:`. */
  reconnectMs: number | undefined
  readonly mayEnd: boolean
}

/** A connection ended and the next one may do better. */
class Cut extends Schema.TaggedError<Cut>()("Cut", {}) {}

type Item = Result.Result<Sse.Event, FeedFailure>

/**
 * One connection. What another connection could mend fails as `Cut`; what none
 * could mend is an element, so that the retry around this stream never sees it.
 */
const connectOnce = (
  connection: Connection,
  url: string,
  position: Position
): Stream.Stream<Item, Cut, HttpClient.HttpClient> =>
  Stream.unwrap(
    Effect.gen(function* () {
      if (position.failures > limits.reconnectsInARow) {
        return Stream.succeed(Result.fail(new FeedLost({ failures: position.failures, url })))
      }
      if (position.connections > 0) yield* Effect.sleep(pauseMs(position))
      position.connections += 1
      position.failures += 1
      const http = yield* HttpClient.HttpClient
      const response = yield* http
        .execute(feedRequest(connection, url, position.lastEventId))
        .pipe(Effect.mapError(() => new Cut({})))
      if (response.status === 204) return Stream.empty
      if (response.status !== 200) return yield* refusal(response)
      position.failures = 0
      return readItems(response.stream, url, position)
    })
  )

/** The pause before the next connection: the server's wish, or the client's own, doubled with each failure in a row. */
export const pauseMs = (position: {
  readonly failures: number
  readonly reconnectMs: number | undefined
}): number =>
  Math.min(
    (position.reconnectMs ?? limits.reconnectFirstMs) * 2 ** position.failures,
    limits.reconnectLongestMs
  )

const feedRequest = (connection: Connection, url: string, lastEventId: string | undefined) =>
  HttpClientRequest.get(url).pipe(
    HttpClientRequest.accept("text/event-stream"),
    lastEventId === undefined
      ? (request) => request
      : HttpClientRequest.setHeader("last-event-id", lastEventId),
    withCredential(connection)
  )

/** A server that is busy or starting is asked again; any other answer is final. */
const refusal = (
  response: HttpClientResponse.HttpClientResponse
): Effect.Effect<Stream.Stream<Item, Cut>, Cut> =>
  response.status >= 500 || response.status === 429 || response.status === 408
    ? Effect.fail(new Cut({}))
    : response.text.pipe(
        Effect.orElseSucceed(() => ""),
        Effect.map((text) =>
          Stream.succeed(
            Result.fail(
              new FeedRefused({ status: response.status, answer: text.slice(0, limits.quotedAnswerChars) })
            )
          )
        )
      )

/**
 * Reads the events of one response.
 *
 * **Gotchas** Effect's own decoder ends the stream at a `retry:` line, although
 * a server may send one at the beginning of each stream: here it is only noted.
 */
const readItems = (
  bytes: Stream.Stream<Uint8Array, HttpClientError.HttpClientError>,
  url: string,
  position: Position
): Stream.Stream<Item, Cut> => {
  let items: Array<Item> = []
  let isQuiet = true
  const parser = Sse.makeParser(
    (event) => {
      if (event._tag === "Event") items.push(Result.succeed(event))
      else position.reconnectMs = Duration.toMillis(event.duration)
    },
    { maxEventSize: limits.feedEventUnits }
  )
  const feed = (text: string): ReadonlyArray<Item> => {
    items = []
    const fault = parser.feed(text)
    isQuiet = isQuiet && items.length === 0
    return fault ? [...items, Result.fail(new FeedUnreadable({ url, reason: fault.message }))] : items
  }
  return bytes.pipe(
    Stream.mapError(() => new Cut({})),
    Stream.timeoutOrElse({ duration: limits.feedSilenceMs, orElse: () => Stream.fail(new Cut({})) }),
    Stream.decodeText(),
    Stream.map(feed),
    Stream.flattenIterable,
    Stream.concat(
      Stream.suspend(() => (isQuiet && position.mayEnd ? Stream.empty : Stream.fail(new Cut({}))))
    )
  )
}

const readEvent = <A>(
  decode: (text: unknown) => Result.Result<A, Schema.SchemaError>,
  url: string,
  event: Sse.Event
): Result.Result<FeedEvent<A>, FeedUnreadable> =>
  Result.match(decode(event.data), {
    onSuccess: (data) => Result.succeed({ id: event.id, data }),
    onFailure: (error) =>
      Result.fail(new FeedUnreadable({ url, reason: error.message.slice(0, limits.quotedAnswerChars) }))
  })
