/**
 * A session of 2025-11-25 as it goes over the wire: each request over a connection of its own, which can break.
 */
import { Effect, type Scope } from "effect"
import { type EventStream, openStream } from "./event-stream.ts"
import { opening, sendMessage } from "./mcp-clients.ts"
import { addressOf } from "./mcp-extension-words.ts"
import type { Json, Story } from "./platform.ts"

/** The answer to a request, as it comes. */
export interface Answering extends Pick<EventStream, "cut"> {
  readonly id: number
  /** The first message that comes. */
  readonly first: Effect.Effect<Json>
}

export interface Session {
  /** Sends a request and hears its answer, until the scope ends. */
  readonly open: (method: string, params: Json) => Effect.Effect<Answering, never, Scope.Scope>
  /** Takes a request back. */
  readonly takeBack: (request: Answering) => Effect.Effect<unknown>
  /** Ends the session. */
  readonly end: Effect.Effect<unknown>
}

/** Begins a session with a client that can do this. */
export const newSession = Effect.fn("newSession")(function* (story: Story, capabilities: Json = {}) {
  const path = addressOf(story)
  const params = { ...opening.params, capabilities }
  const begun = yield* sendMessage(story, path, { ...opening, params })
  const headers = {
    "content-type": "application/json",
    accept: "application/json, text/event-stream",
    "mcp-protocol-version": "2025-11-25",
    "mcp-session-id": begun.headers.get("mcp-session-id") ?? ""
  }
  let lastId = opening.id
  const session: Session = {
    open: Effect.fnUntraced(function* (method, asked) {
      const id = ++lastId
      const body = JSON.stringify({ jsonrpc: "2.0", id, method, params: asked })
      const stream = yield* openStream(story, path, undefined, { method: "POST", headers, body })
      const first = Effect.map(
        stream.until((heard) => heard.length > 0),
        ([message]): Json => message?.json
      )
      return { id, first, cut: stream.cut }
    }),
    takeBack: ({ id: requestId }) =>
      sendMessage(
        story,
        path,
        { jsonrpc: "2.0", method: "notifications/cancelled", params: { requestId } },
        headers
      ),
    end: Effect.promise(() =>
      fetch(new URL(path, story.url), {
        method: "DELETE",
        headers: { ...headers, authorization: `Bearer ${story.token}` }
      })
    )
  }
  return session
})
