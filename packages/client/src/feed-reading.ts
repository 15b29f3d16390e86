/**
 * Reads a live feed (server-sent events) across as many connections as it takes: below both clients.
 *
 * After a cut it reconnects with `Last-Event-ID`, so no event is lost and none
 * comes twice, also before the first: the server says where a connection begins.
 * It gives up only after `limits.reconnectsInARow` failures in a row, or at once
 * when the server refuses. A feed is left by interrupting the stream. Texts are
 * not understood here: who reads them brings the meaning.
 */
import { Data, Duration, Effect, Random, Result, Schedule, Stream } from "effect"
import { Sse } from "effect/encoding"
import { HttpClient, HttpClientRequest, type HttpClientResponse } from "effect/http"
import { limits } from "./limits.ts"

/** One event as it came: `id` is what `Last-Event-ID` continues after. */
export interface FeedText {
  readonly id: string | undefined
  /** `message` where the server gave it no name. */
  readonly name: string
  readonly text: string
  /** The answer that it is a part of. */
  readonly response: HttpClientResponse.HttpClientResponse
}

/** Why a feed ended that should not: the server refused, could not be reached any more, or sent what is no feed. */
export type FeedFault =
  | {
      readonly fault: "refused"
      readonly response: HttpClientResponse.HttpClientResponse
      readonly answer: string
    }
  | { readonly fault: "lost"; readonly failures: number }
  | { readonly fault: "unreadable"; readonly reason: string }

export interface ReadingOptions {
  /** Begins after this event, which the log must have; without it the feed begins where its address says. */
  readonly lastEventId?: string | undefined
  /**
   * Whether the log behind the feed is over. It is asked when a connection was closed in good order and had brought
   * nothing: so a server closes the stream of such a log, and also any when it stops.
   */
  readonly isOver?: Effect.Effect<boolean> | undefined
  /** Hears behind which place a connection begins, from the server. */
  readonly begins?: ((lastEventId: string) => void) | undefined
  /**
   * Whether a server says with this event that it tells no more, and that the next connection may. It is not told, unless
   * `limits.reconnectsInARow` such events have come before it, in a row or not: each of them counts as a failure for good.
   */
  readonly breaksOff?: ((event: FeedText) => boolean) | undefined
  /** Hears that no connection is to be had, once, and then that there is one again. */
  readonly hear?: ((state: "waiting" | "back") => Effect.Effect<void>) | undefined
}

/** Where a feed stands between two connections. */
interface Position {
  lastEventId: string | undefined
  connections: number
  /** Connections that failed since one was last open. */
  failures: number
  /** Events so far with which a server broke off. */
  brokenOff: number
  /** The pause the server asked for with `retry:`. */
  reconnectMs: number | undefined
  readonly isOver: Effect.Effect<boolean>
  readonly begins: (lastEventId: string) => void
  readonly breaksOff: (event: FeedText) => boolean
  readonly hear: (state: "waiting" | "back") => Effect.Effect<void>
  isWaiting: boolean
}

/** A connection ended and the next one may do better. */
class Cut extends Data.TaggedError("Cut")<{}> {}

type Item = Result.Result<FeedText, FeedFault>

/** Every event that the request's address tells, in order, each once. */
export const readFeed = (
  request: HttpClientRequest.HttpClientRequest,
  options?: ReadingOptions
): Stream.Stream<FeedText, FeedFault, HttpClient.HttpClient> =>
  Stream.suspend(() => {
    const position: Position = {
      lastEventId: options?.lastEventId,
      connections: 0,
      failures: 0,
      brokenOff: 0,
      reconnectMs: undefined,
      isOver: options?.isOver ?? Effect.succeed(false),
      begins: options?.begins ?? (() => {}),
      breaksOff: options?.breaksOff ?? (() => false),
      hear: options?.hear ?? (() => Effect.void),
      isWaiting: false
    }
    return connectOnce(request, position).pipe(
      Stream.retry(Schedule.forever),
      Stream.mapError((): FeedFault => ({ fault: "lost", failures: position.failures })),
      Stream.mapEffect((item) => Effect.fromResult(item)),
      Stream.tap((event) => Effect.sync(() => void (position.lastEventId = event.id ?? position.lastEventId)))
    )
  })

/**
 * One connection. What another connection could mend fails as `Cut`; what none
 * could mend is an element, so that the retry around this stream never sees it.
 */
const connectOnce = (
  request: HttpClientRequest.HttpClientRequest,
  position: Position
): Stream.Stream<Item, Cut, HttpClient.HttpClient> =>
  Stream.unwrap(
    Effect.gen(function* () {
      if (position.failures > limits.reconnectsInARow)
        return fails({ fault: "lost", failures: position.failures })
      yield* tellWait(position, position.failures > 0)
      if (position.connections > 0) yield* Effect.sleep(pauseMs(position) * (1 - (yield* Random.next) / 2))
      position.connections += 1
      position.failures += 1
      const http = yield* HttpClient.HttpClient
      const response = yield* http.execute(continuing(request, position)).pipe(
        Effect.timeout(limits.answerMs),
        Effect.mapError(() => new Cut())
      )
      if (response.status === 204) return Stream.empty
      if (response.status !== 200) return yield* refusal(response, position)
      position.failures = position.brokenOff
      yield* tellWait(position, false)
      return readItems(response, position)
    })
  )

/** Says once that no connection is to be had, and once that there is one again. */
const tellWait = (position: Position, isWaiting: boolean): Effect.Effect<void> => {
  if (position.isWaiting === isWaiting) return Effect.void
  position.isWaiting = isWaiting
  return position.hear(isWaiting ? "waiting" : "back")
}

const fails = (fault: FeedFault): Stream.Stream<Item> => Stream.succeed(Result.fail(fault))

/** The longest pause before the next connection: the server's wish, or the client's own, doubled with each failure in a row. */
export const pauseMs = (position: {
  readonly failures: number
  readonly reconnectMs: number | undefined
}): number =>
  Math.min(
    (position.reconnectMs ?? limits.reconnectFirstMs) * 2 ** position.failures,
    limits.reconnectLongestMs
  )

const continuing = (request: HttpClientRequest.HttpClientRequest, { lastEventId }: Position) =>
  request.pipe(
    HttpClientRequest.accept("text/event-stream"),
    lastEventId === undefined ? (same) => same : HttpClientRequest.setHeader("last-event-id", lastEventId)
  )

/** A server that is busy or starting is asked again; any other answer is final, and so is that to the last try. */
const refusal = (
  response: HttpClientResponse.HttpClientResponse,
  { failures }: Position
): Effect.Effect<Stream.Stream<Item, Cut>, Cut> =>
  isPassing(response) && failures <= limits.reconnectsInARow
    ? Effect.andThen(Effect.ignore(response.text), Effect.fail(new Cut()))
    : response.text.pipe(
        Effect.orElseSucceed(() => ""),
        Effect.map((answer) => fails({ fault: "refused", response, answer }))
      )

const isPassing = ({ headers, status }: HttpClientResponse.HttpClientResponse): boolean =>
  // Such a conflict says that what an earlier connection asked under the same key is still at work.
  status >= 500 ||
  status === 429 ||
  status === 408 ||
  (status === 409 && headers["retry-after"] !== undefined)

/**
 * Reads the events of one response.
 *
 * **Gotchas** Effect's own decoder ends the stream at a `retry:` line, although
 * a server may send one at the beginning of each stream: here it is only noted.
 * The id before it is the place behind which the stream begins; an id without
 * data is told nowhere else.
 */
const readItems = (
  response: HttpClientResponse.HttpClientResponse,
  position: Position
): Stream.Stream<Item, Cut> => {
  let items: Array<Item> = []
  let isQuiet = true
  const parser = Sse.makeParser(
    (event) => {
      if (event._tag === "Retry") return noteBeginning(event, position)
      const told = { id: event.id, name: event.event, text: event.data, response }
      if (position.brokenOff < limits.reconnectsInARow && position.breaksOff(told)) position.brokenOff += 1
      else items.push(Result.succeed(told))
    },
    { maxEventSize: limits.feedEventUnits }
  )
  const feed = (text: string): ReadonlyArray<Item> => {
    items = []
    const fault = parser.feed(text)
    isQuiet = isQuiet && items.length === 0
    return fault ? [...items, Result.fail({ fault: "unreadable", reason: fault.message })] : items
  }
  const end = Effect.gen(function* () {
    if (isQuiet && (yield* position.isOver)) return Stream.empty
    return yield* new Cut()
  })
  return response.stream.pipe(
    Stream.mapError(() => new Cut()),
    Stream.timeoutOrElse({ duration: limits.feedSilenceMs, orElse: () => Stream.fail(new Cut()) }),
    Stream.decodeText(),
    Stream.map(feed),
    Stream.flattenIterable,
    Stream.concat(Stream.unwrap(end))
  )
}

const noteBeginning = ({ duration, lastEventId }: Sse.Retry, position: Position): void => {
  position.reconnectMs = Duration.toMillis(duration)
  if (lastEventId === undefined) return
  position.lastEventId = lastEventId
  position.begins(lastEventId)
}
