/**
 * What becomes of a stream when its token is revoked.
 */
import { describe, expect, layer } from "@effect/vitest"
import { Effect } from "effect"
import { TestClock } from "effect/testing"
import { streamLimits } from "../src/http/limits.ts"
import { eventsOf, openEvents } from "../testing/mcp-event-stream.ts"
import { opening, sendMessage } from "../testing/mcp-clients.ts"
import { ask } from "../testing/owner-rows.ts"
import type { Doors, Json, Story } from "../testing/platform.ts"
import { newStoryHere, SharedServer } from "../testing/shared-server.ts"
import { asUser } from "../testing/token-words.ts"

const addressOf = ({ projectId }: Story) => `/api/projects/${projectId}/mcp`

/** Opens the stream of a session, and reads until it ends. */
const listen = Effect.fnUntraced(function* (doors: Doors, path: string) {
  const begun = yield* sendMessage(doors, path, opening)
  const headers = {
    authorization: `Bearer ${doors.token}`,
    accept: "text/event-stream",
    "mcp-session-id": begun.headers.get("mcp-session-id") ?? ""
  }
  const response = yield* Effect.promise(() => fetch(new URL(path, doors.url), { headers }))
  expect(response.headers.get("content-type")).toBe("text/event-stream")
  return { over: Effect.promise(() => response.text()) }
})

/** A member's token. */
const joined = Effect.fnUntraced(function* (story: Story) {
  const userId = `listener-${crypto.randomUUID()}`
  yield* story.post("/members", { userId, role: "viewer" })
  const made = yield* story.post("/tokens", { name: "listens", userId })
  const listener: Story = { ...story, token: made.token }
  return { userId, id: made.id, listener }
})

/** The ways in which a token ends. */
const endings: ReadonlyArray<readonly [string, (story: Story, token: Json) => Effect.Effect<unknown>]> = [
  ["is ended", (story, { id }) => story.delete(`/tokens/${id}`)],
  ["is a former member's", (story, { userId }) => story.delete(`/members/${userId}`)],
  [
    "has expired",
    (story, { id }) => ask(story.access, "update kb.api_tokens set expires_at = now() where id = $1", [id])
  ]
]

layer(SharedServer.layer)((it) => {
  describe("A token that is no good any more", () => {
    for (const [how, end] of endings)
      it.effect(`hears no event from the moment on in which it ${how}`, () =>
        Effect.gen(function* () {
          const story = yield* newStoryHere
          const { listener, ...token } = yield* joined(story)
          const live = yield* openEvents(listener, { name: "object.created" })
          yield* story.post("/objects", { type: "Heard" })
          yield* live.until((heard) => eventsOf(heard).length === 1)
          yield* end(story, token)
          yield* story.post("/objects", { type: "Unheard" })
          yield* live.ended
          expect(eventsOf(live.heard).map(({ data }) => data.type)).toEqual(["Heard"])
        })
      )
  })

  describe("A token that is revoked", () => {
    it.effect("loses the stream of its session", () =>
      Effect.gen(function* () {
        const story = yield* newStoryHere
        const person = yield* asUser(story, "viewer")
        const stream = yield* listen(person, addressOf(story))
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

  describe("A token of which the database says nothing for a moment", () => {
    it.effect("keeps the stream of its session", () =>
      Effect.gen(function* () {
        const story = yield* newStoryHere
        const person = yield* asUser(story, "viewer")
        const stream = yield* listen(person, addressOf(story))
        const over = yield* Effect.forkChild(stream.over)
        // Whoever opens a stream is looked up once more when it begins.
        for (let times = 0; times < 5; times += 1)
          expect((yield* sendMessage(person, addressOf(story), opening)).status).toBe(200)
        const principals = "execute on function kb.find_principal"
        yield* ask(story.access, `revoke ${principals} from tropism_server`)
        yield* TestClock.adjust(streamLimits.permitIntervalMs)
        for (let times = 0; times < 5; times += 1)
          expect((yield* sendMessage(person, addressOf(story), opening)).status).toBe(500)
        yield* ask(story.access, `grant ${principals} to tropism_server`)
        expect((yield* sendMessage(person, addressOf(story), opening)).status).toBe(200)
        expect(over.pollUnsafe()).toBe(undefined)
      })
    )
  })
})
