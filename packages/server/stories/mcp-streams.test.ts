/**
 * What becomes of a stream when its token is revoked.
 */
import { describe, expect, layer } from "@effect/vitest"
import { Effect } from "effect"
import { TestClock } from "effect/testing"
import { streamLimits } from "../src/http/stream-limits.ts"
import { opening, type Revision, revisions, sendMessage } from "../testing/mcp-clients.ts"
import { ask } from "../testing/owner-rows.ts"
import type { Doors, Story } from "../testing/platform.ts"
import { newStoryHere, SharedServer } from "../testing/shared-server.ts"
import { asUser } from "../testing/token-words.ts"

const addressOf = ({ projectId }: Story) => `/api/projects/${projectId}/mcp`

const envelope = {
  "io.modelcontextprotocol/protocolVersion": "2026-07-28",
  "io.modelcontextprotocol/clientCapabilities": {},
  "io.modelcontextprotocol/clientInfo": { name: "a-story", version: "1" }
}

/** A request of a revision, as `fetch` takes it; in a session where the revision has them. */
const requestOf = Effect.fnUntraced(function* (
  doors: Doors,
  path: string,
  revision: Revision,
  method: string,
  params: Record<string, unknown>
) {
  const session =
    revision === "2025-11-25"
      ? (yield* sendMessage(doors, path, opening)).headers.get("mcp-session-id")
      : undefined
  const meta = revision === "2025-11-25" ? {} : { _meta: envelope }
  return {
    method: "POST",
    headers: {
      authorization: `Bearer ${doors.token}`,
      "content-type": "application/json",
      accept: "application/json, text/event-stream",
      "mcp-protocol-version": revision,
      ...(session ? { "mcp-session-id": session } : { "mcp-method": method }),
      ...(typeof params["name"] === "string" && !session ? { "mcp-name": params["name"] } : {})
    },
    body: JSON.stringify({ jsonrpc: "2.0", id: 9, method, params: { ...params, ...meta } })
  }
})

/** Opens a stream that tells of what changes, and reads until it ends. */
const listen = Effect.fnUntraced(function* (doors: Doors, path: string, revision: Revision) {
  const { body, headers, method } =
    revision === "2025-11-25"
      ? { ...(yield* requestOf(doors, path, revision, "ping", {})), method: "GET", body: undefined }
      : yield* requestOf(doors, path, revision, "subscriptions/listen", {
          notifications: { toolsListChanged: true }
        })
  const response = yield* Effect.promise(() =>
    fetch(new URL(path, doors.url), { method, headers, ...(body === undefined ? {} : { body }) })
  )
  expect(response.headers.get("content-type")).toBe("text/event-stream")
  return { over: Effect.promise(() => response.text()) }
})

layer(SharedServer.layer)((it) => {
  describe("A token that is revoked", () => {
    for (const revision of revisions)
      it.effect(`loses its streams (${revision})`, () =>
        Effect.gen(function* () {
          const story = yield* newStoryHere
          const person = yield* asUser(story, "viewer")
          const stream = yield* listen(person, addressOf(story), revision)
          yield* ask(
            story.access,
            "update kb.api_tokens set revoked_at = now() where hash = encode(sha256($1::bytea), 'hex')",
            [person.token]
          )
          expect((yield* sendMessage(person, addressOf(story), opening)).status).toBe(401)
          yield* TestClock.adjust(streamLimits.permitIntervalMs)
          expect(yield* stream.over).toMatch(/^:/m)
          expect((yield* sendMessage(story, addressOf(story), opening)).status).toBe(200)
        })
      )
  })
})
