/**
 * Streams of MCP events and of changes, as a client of 2026-07-28 hears them.
 */
import { Effect, type Scope } from "effect"
import { type EventStream, openStream } from "./event-stream.ts"
import { addressOf, askable, modernHeaders, modernMessage } from "./mcp-extension-words.ts"
import type { Json, Story } from "./platform.ts"

export interface EventMessages extends Pick<EventStream, "headers" | "cut" | "ended"> {
  /** The notifications that have come so far. */
  readonly heard: ReadonlyArray<Json>
  readonly until: (satisfies: (heard: ReadonlyArray<Json>) => boolean) => Effect.Effect<ReadonlyArray<Json>>
}

/** Opens a stream of events, until the scope ends. */
export const openEvents = (story: Story, params: Json): Effect.Effect<EventMessages, never, Scope.Scope> =>
  openMessages(story, "events/stream", params)

/** Listens to what changes, until the scope ends. */
export const openListening = (
  story: Story,
  notifications: Json,
  capabilities: Json = askable
): Effect.Effect<EventMessages, never, Scope.Scope> =>
  openMessages(story, "subscriptions/listen", { notifications }, capabilities)

const openMessages = (
  story: Story,
  method: string,
  params: Json,
  capabilities: Json = askable
): Effect.Effect<EventMessages, never, Scope.Scope> =>
  Effect.map(
    openStream(story, addressOf(story), undefined, {
      method: "POST",
      headers: modernHeaders(story, method, params),
      body: JSON.stringify(modernMessage(method, params, capabilities))
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

/** Task notifications in order: id and status. */
export const toldOf = (heard: ReadonlyArray<Json>) =>
  heard
    .filter(({ method }) => method === "notifications/tasks")
    .map(({ params }) => [params.taskId, params.status])
