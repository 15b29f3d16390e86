/**
 * A stream of MCP events, as a client of 2026-07-28 hears it.
 */
import { Effect, type Scope } from "effect"
import { type EventStream, openStream } from "./event-stream.ts"
import { addressOf, modernHeaders, modernMessage } from "./mcp-extension-words.ts"
import type { Json, Story } from "./platform.ts"

export interface EventMessages extends Pick<EventStream, "headers" | "cut" | "ended"> {
  /** The notifications that have come so far. */
  readonly heard: ReadonlyArray<Json>
  readonly until: (satisfies: (heard: ReadonlyArray<Json>) => boolean) => Effect.Effect<ReadonlyArray<Json>>
}

/** Opens a stream, until the scope ends. */
export const openEvents = (story: Story, params: Json): Effect.Effect<EventMessages, never, Scope.Scope> =>
  Effect.map(
    openStream(story, addressOf(story), undefined, {
      method: "POST",
      headers: modernHeaders(story, "events/stream", params),
      body: JSON.stringify(modernMessage("events/stream", params))
    }),
    (stream) => ({
      headers: stream.headers,
      cut: stream.cut,
      ended: stream.ended,
      get heard() {
        return stream.heard.map(({ json }) => json)
      },
      until: (satisfies) =>
        Effect.map(
          stream.until((heard) => satisfies(heard.map(({ json }) => json))),
          (heard) => heard.map(({ json }) => json)
        )
    })
  )

/** Only the events among what was heard, with their cursors. */
export const eventsOf = (heard: ReadonlyArray<Json>): ReadonlyArray<Json> =>
  heard.filter(({ method }) => method === "notifications/events/event").map(({ params }) => params)
