/**
 * Follows a live feed of the server as a stream of what the contract says is in it.
 *
 * How a feed survives cut connections stands in `feed-reading.ts`. An event that
 * is not what the caller's schema says ends the stream.
 */
import type { LogPlace } from "@tropism/api/page"
import { ContextEvent, TextDeltaEvent, UnknownEvent } from "@tropism/domain/context-event"
import { GraphEvent } from "@tropism/domain/graph"
import type { ProjectId } from "@tropism/domain/ids"
import { beginningOf } from "@tropism/domain/text-beginning"
import { Effect, Result, Schema, Stream } from "effect"
import { type HttpClient, HttpClientRequest } from "effect/http"
import { type Connection, withCredential } from "./connection.ts"
import { type FeedFault, readFeed, type ReadingOptions } from "./feed-reading.ts"
import { limits } from "./limits.ts"

/** One event of a feed: `id` is what `Last-Event-ID` continues after. */
export interface FeedEvent<A> {
  readonly id: string | undefined
  readonly data: A
}

/** The server does not let this caller read the feed, does not know it, or was busy to the last try. */
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

export interface FollowingOptions extends ReadingOptions {
  /** Only what comes after this place: a position of the feed, a number of the log, its `start`, or `now`, the default. */
  readonly after?: LogPlace | undefined
}

/** The graph events of a project. */
export const followGraphEvents = (connection: Connection, projectId: ProjectId, options?: FollowingOptions) =>
  followEvents(connection, `/api/projects/${projectId}/events`, GraphEvent, options)

/** Follows the feed at a path, event by event, across as many connections as it takes. */
export const followEvents = <A, I>(
  connection: Connection,
  path: string,
  schema: Schema.Codec<A, I>,
  options?: FollowingOptions
): Stream.Stream<FeedEvent<A>, FeedFailure, HttpClient.HttpClient> => {
  const url = `${connection.url}${path}`
  const request = HttpClientRequest.get(url, { urlParams: { after: options?.after } })
  const decode = Schema.decodeUnknownResult(Schema.fromJsonString(schema))
  return readFeed(withCredential(connection)(request), options).pipe(
    Stream.mapError(failureOf(url)),
    Stream.mapEffect(({ id, text }) =>
      Effect.fromResult(
        Result.mapBoth(decode(text), {
          onSuccess: (data) => ({ id, data }),
          onFailure: (error) =>
            new FeedUnreadable({ url, reason: beginningOf(error.message, limits.quotedAnswerChars) })
        })
      )
    )
  )
}

const failureOf =
  (url: string) =>
  (fault: FeedFault): FeedFailure => {
    switch (fault.fault) {
      case "refused":
        return new FeedRefused({
          status: fault.response.status,
          answer: beginningOf(fault.answer, limits.quotedAnswerChars)
        })
      case "lost":
        return new FeedLost({ failures: fault.failures, url })
      case "unreadable":
        return new FeedUnreadable({ url, reason: fault.reason })
    }
  }
