/**
 * The log of a context as it is written, with each event as the server sent it.
 *
 * What a program reads is what stands in the log, byte for byte, also of types
 * that this version does not know; what a person reads is decoded from it.
 */
import type { LogPlace } from "@tropism/api/page"
import { ContextFeedEvent, followEvents } from "@tropism/client/feed"
import { Effect, Schema, Stream } from "effect"
import { FetchHttpClient } from "effect/http"
import type { Access } from "./access.ts"
import { requestFailure } from "./failure.ts"

/** One event of a log, or a piece of an answer, which has no number. */
export interface FedEvent {
  /** Its place in the log. */
  readonly number: number | undefined
  readonly json: Schema.Json
  readonly event: ContextFeedEvent
}

const decode = Schema.decodeUnknownEffect(ContextFeedEvent)

/** The events after a place, and then those that come; a connection that is cut is made again, and nothing comes twice. */
export const followContext = (access: Access, name: string, after: LogPlace) =>
  followEvents(
    access.connection,
    `/api/projects/${access.project.id}/contexts/${encodeURIComponent(name)}/events`,
    Schema.Json,
    { after }
  ).pipe(
    Stream.mapEffect(({ data }) =>
      Effect.map(decode(data), (event): FedEvent => ({ number: numberOf(event), json: data, event }))
    ),
    Stream.mapError((error) => requestFailure(error, access.connection.url)),
    Stream.provide(FetchHttpClient.layer)
  )

/** The id of a delta is `{agentName}:{n}.d{k}`. */
const numberOf = ({ id, type }: ContextFeedEvent): number | undefined =>
  type === "TextDeltaEvent" ? undefined : Number(id.slice(id.indexOf(":") + 1))
