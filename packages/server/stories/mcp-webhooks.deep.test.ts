/**
 * Events of the graph delivered to addresses of subscribers: signed, in order, at least once, and only to who wants them.
 */
import { describe, expect, it, layer } from "@effect/vitest"
import {
  createMCPClient,
  experimental_createMCPEventWebhook as createMCPEventWebhook,
  type Experimental_MCPEventStore as EventStore
} from "@ai-sdk/mcp"
import { Effect } from "effect"
import { eventLimits } from "../src/mcp/events.ts"
import { freshDatabase } from "../testing/fresh-database.ts"
import { addressOf, resultOf, rpc } from "../testing/mcp-extension-words.ts"
import { isSignedWith, receiver, secretOf, subscribing } from "../testing/mcp-receiver.ts"
import { startMortal } from "../testing/mortal-servers.ts"
import { ask } from "../testing/owner-rows.ts"
import { eventually, type Json, newProject, type Story, storyIn } from "../testing/platform.ts"
import { newStoryHere, SharedServer } from "../testing/shared-server.ts"
import { feedOf } from "../testing/story-words.ts"
import { asUser } from "../testing/token-words.ts"

const thing = (story: Story, key: string) => story.post("/objects", { type: "Thing", key })

const keysOf = (delivered: ReadonlyArray<{ readonly body: Json }>) =>
  delivered.map(({ body }) => body.data.key)

const rowsOf = (story: Story): Effect.Effect<ReadonlyArray<Json>> =>
  Effect.map(
    ask(
      story.access,
      "select to_jsonb(kept) from kb.event_subscriptions kept where project_id = $1 order by id",
      [story.projectId]
    ),
    (rows) => rows.map(([row]) => row)
  )

/** What the story's subscription says, once it satisfies. */
const rowWhen = (story: Story, satisfies: (row: Json) => boolean): Effect.Effect<Json> =>
  eventually(
    Effect.map(rowsOf(story), ([row]) => row),
    satisfies
  )

const isTold = (row: Json): boolean => row.claimed_until === null && row.last_error === null

layer(SharedServer.layer, { excludeTestServices: true })((it) => {
  describe("Events are delivered to an address", () => {
    it.effect("the address is asked first; then each event comes signed, in order, under its own id", () =>
      Effect.gen(function* () {
        const story = yield* newStoryHere
        const hook = yield* receiver()
        yield* thing(story, "before")
        yield* feedOf(story, 1)
        const { result } = yield* subscribing(story, hook.url, { arguments: { type: "Thing" } })
        expect(result).toMatchObject({
          id: expect.stringMatching(/^sub_[0-9a-f]{32}$/),
          refreshBefore: expect.any(String),
          cursor: expect.any(String),
          truncated: false
        })
        expect(hook.all).toMatchObject([{ body: { type: "verification", challenge: expect.any(String) } }])
        for (const key of ["1", "2", "3"]) yield* thing(story, key)
        yield* story.post("/objects", { type: "Other" })
        const delivered = yield* hook.until(3)
        expect(keysOf(delivered)).toEqual(["1", "2", "3"])
        const feed = yield* feedOf(story, 5)
        expect(delivered.map(({ body }) => body.eventId)).toEqual(feed.slice(1, 4).map(({ id }) => id))
        for (const each of hook.all) {
          expect(isSignedWith(each, secretOf("a"))).toBe(true)
          expect(each.headers["x-mcp-subscription-id"]).toBe(result.id)
        }
        for (const { body, headers } of delivered) expect(headers["webhook-id"]).toBe(body.eventId)
        const behind = yield* resultOf(story, "events/poll", {
          name: "object.created",
          arguments: { type: "Thing" },
          cursor: delivered[1]?.body.cursor
        })
        expect(behind.events.map(({ data }: Json) => data.key)).toEqual(["3"])
        yield* rowWhen(story, (row) => isTold(row) && Number(row.position) === 5)
        expect(hook.events()).toHaveLength(3)
      })
    )

    it.effect(
      "what the address does not take comes again under the same id, and holds back what is behind it",
      () =>
        Effect.gen(function* () {
          const story = yield* newStoryHere
          const hook = yield* receiver()
          yield* subscribing(story, hook.url)
          yield* hook.answerWith(503)
          for (const key of ["1", "2"]) yield* thing(story, key)
          yield* hook.until(2)
          expect(new Set(keysOf(hook.events()))).toEqual(new Set(["1"]))
          const failing = yield* rowWhen(story, (row) => row.last_error !== null)
          expect(failing).toMatchObject({ status: "active", last_error: "http_5xx" })
          yield* hook.answerWith(200)
          yield* eventually(Effect.sync(hook.events), (seen) => keysOf(seen).at(-1) === "2")
          const first = hook.events().filter(({ body }) => body.data.key === "1")
          expect(new Set(first.map(({ headers }) => headers["webhook-id"])).size).toBe(1)
          expect(keysOf(hook.events()).filter((key) => key === "2")).toHaveLength(1)
        })
    )

    it.effect(
      "an address that fails too often is told nothing more until its subscriber comes back, and then everything",
      () =>
        Effect.gen(function* () {
          const story = yield* newStoryHere
          const hook = yield* receiver()
          const { result: made } = yield* subscribing(story, hook.url)
          yield* hook.answerWith(404)
          yield* ask(story.access, "update kb.event_subscriptions set attempts = 15 where project_id = $1", [
            story.projectId
          ])
          yield* thing(story, "1")
          const row = yield* rowWhen(story, ({ status }) => status === "suspended")
          expect(row.last_error).toBe("http_4xx")
          yield* thing(story, "2")
          yield* feedOf(story, 2)
          yield* hook.answerWith(200)
          const { result } = yield* subscribing(story, hook.url)
          expect(result).toMatchObject({
            id: made.id,
            deliveryStatus: { active: false, lastError: "http_4xx", failedSince: expect.any(String) }
          })
          yield* eventually(Effect.sync(hook.events), (seen) => keysOf(seen).at(-1) === "2")
          expect(keysOf(hook.events())).toEqual(["1", "1", "2"])
          // It said once that it wants deliveries, and is not asked again.
          expect(hook.all.filter(({ body }) => body.type === "verification")).toHaveLength(1)
        })
    )

    it.effect("an event that is too large for the address is passed over", () =>
      Effect.gen(function* () {
        const story = yield* newStoryHere
        const hook = yield* receiver()
        yield* subscribing(story, hook.url)
        yield* hook.answerWith(413)
        yield* thing(story, "large")
        yield* hook.until(1)
        yield* rowWhen(story, (row) => isTold(row) && Number(row.position) === 1)
        yield* hook.answerWith(204)
        yield* thing(story, "small")
        yield* hook.until(2)
        expect(keysOf(hook.events())).toEqual(["large", "small"])
      })
    )

    it.effect(
      "begins behind a cursor, with another secret is signed with both, and ends by its owner's word alone",
      () =>
        Effect.gen(function* () {
          const story = yield* newStoryHere
          const hook = yield* receiver()
          const { cursor } = yield* resultOf(story, "events/poll", { name: "object.created" })
          yield* thing(story, "missed")
          yield* feedOf(story, 1)
          yield* subscribing(story, hook.url, { cursor })
          expect(keysOf(yield* hook.until(1))).toEqual(["missed"])
          yield* subscribing(story, hook.url, { cursor, delivery: { secret: secretOf("b") } })
          yield* thing(story, "turned")
          const delivered = (yield* hook.until(2))[1]
          if (!delivered) throw new Error("Nothing was delivered")
          expect([isSignedWith(delivered, secretOf("a")), isSignedWith(delivered, secretOf("b"))]).toEqual([
            true,
            true
          ])
          const other = yield* asUser(story, "viewer")
          const target = { name: "object.created", delivery: { url: hook.url } }
          const { error } = yield* rpc(other, "events/unsubscribe", target)
          expect(error).toMatchObject({ code: -32_011, data: { kind: "subscription" } })
          expect(yield* rpc(story, "events/unsubscribe", target)).toMatchObject({
            result: { resultType: "complete" }
          })
          expect(yield* rowsOf(story)).toEqual([])
          expect((yield* rpc(story, "events/unsubscribe", target)).error).toEqual(error)
        })
    )

    it.effect("ends with the token that made it, and says so once", () =>
      Effect.gen(function* () {
        const story = yield* newStoryHere
        const member = yield* asUser(story, "admin", [story.projectId], "member")
        const person = yield* asUser(story, "viewer")
        const hook = yield* receiver()
        // What is local is for whoever has the server.
        expect((yield* subscribing(member, hook.url)).error).toMatchObject({ code: -32_602 })
        yield* subscribing(person, hook.url)
        yield* thing(story, "heard")
        yield* hook.until(1)
        yield* ask(
          story.access,
          "update kb.api_tokens set revoked_at = now() where hash = encode(sha256($1::bytea), 'hex')",
          [person.token]
        )
        yield* thing(story, "secret")
        yield* eventually(
          Effect.sync(() => hook.all.filter(({ body }) => body.type === "terminated")),
          (ended) => ended.length === 1
        )
        yield* eventually(rowsOf(story), (rows) => rows.length === 0)
        expect(keysOf(hook.events())).toEqual(["heard"])
      })
    )

    it.effect("stays where it is asked for under another token before its end is told", () =>
      Effect.gen(function* () {
        const story = yield* newStoryHere
        const [person, again] = [
          yield* asUser(story, "viewer", null, "ann"),
          yield* asUser(story, "viewer", null, "ann")
        ]
        const hook = yield* receiver()
        yield* subscribing(person, hook.url)
        yield* hook.hold
        yield* ask(
          story.access,
          "update kb.api_tokens set revoked_at = now() where hash = encode(sha256($1::bytea), 'hex')",
          [person.token]
        )
        yield* thing(story, "first")
        const told = Effect.sync(() => hook.all.filter(({ body }) => body.type === "terminated"))
        yield* eventually(told, (ended) => ended.length === 1)
        expect((yield* subscribing(again, hook.url)).error).toBeUndefined()
        yield* hook.letGo
        // At once, and not first when the claim is over under which its end was told.
        yield* eventually(rowsOf(story), ([row]) => row.claimed_until === null, eventLimits.claimMs / 2)
        yield* thing(story, "second")
        yield* hook.until(1)
        yield* hook.letGo
        expect(yield* rowsOf(story)).toHaveLength(1)
      })
    )

    it.effect("ends when its time is up", () =>
      Effect.gen(function* () {
        const story = yield* newStoryHere
        const hook = yield* receiver()
        const { result } = yield* subscribing(story, hook.url, { ttlMs: null })
        const days = (Date.parse(result.refreshBefore) - Date.now()) / 86_400_000
        expect([days > 29, days < 31]).toEqual([true, true])
        yield* ask(
          story.access,
          "update kb.event_subscriptions set expires_at = now() where project_id = $1",
          [story.projectId]
        )
        yield* eventually(rowsOf(story), (rows) => rows.length === 0)
      })
    )

    it.effect("no address is taken that does not want it, cannot be one, or lies where it must not", () =>
      Effect.gen(function* () {
        const story = yield* newStoryHere
        const shy = yield* receiver({ isShy: true })
        const refused = (url: string, more: Json = {}) =>
          Effect.map(subscribing(story, url, more), ({ error }) => error)
        expect(yield* refused(shy.url)).toMatchObject({ code: -32_015, data: { reason: "challenge_failed" } })
        expect(yield* refused("http://127.0.0.1:1/")).toMatchObject({
          code: -32_015,
          data: { reason: "connection_refused" }
        })
        for (const url of [
          "http://example.com/hook",
          "ftp://example.com/",
          "https://ada:secret@example.com/",
          "https://example.com/#part",
          "nonsense"
        ])
          expect(yield* refused(url)).toMatchObject({
            code: -32_602,
            message: expect.stringContaining("/delivery/url")
          })
        for (const secret of ["whsec_", "whsec_c2hvcnQ=", "secret", secretOf("a").slice(6)])
          expect(yield* refused(shy.url, { delivery: { secret } })).toMatchObject({
            code: -32_602,
            message: expect.stringContaining("/delivery/secret")
          })
        expect(yield* refused(shy.url, { delivery: { mode: "push" } })).toMatchObject({ code: -32_014 })
        expect(yield* rowsOf(story)).toEqual([])
      })
    )

    it.effect("the client of the AI SDK subscribes, hears, and ends it", () =>
      Effect.gen(function* () {
        const story = yield* newStoryHere
        const heard: Array<string> = []
        const kept = new Map<string, Json>()
        const store: EventStore = {
          get: (key) => Promise.resolve(kept.get(key)),
          getById: (id) => Promise.resolve([...kept.values()].find((each) => each.id === id)),
          set: (subscription) => Promise.resolve(void kept.set(subscription.key, subscription)),
          update: (key, patch) => Promise.resolve(void kept.set(key, { ...kept.get(key), ...patch })),
          delete: (key) => Promise.resolve(void kept.delete(key))
        }
        const handle = createMCPEventWebhook({
          store,
          onEvent: ({ event }) => Promise.resolve(void heard.push(String(event.data["key"])))
        })
        const server = yield* Effect.acquireRelease(
          Effect.sync(() => Bun.serve({ port: 0, hostname: "127.0.0.1", fetch: handle })),
          (running) => Effect.promise(() => running.stop(true))
        )
        const client = yield* Effect.acquireRelease(
          Effect.promise(() =>
            createMCPClient({
              transport: {
                type: "http",
                url: story.url + addressOf(story),
                headers: { authorization: `Bearer ${story.token}` }
              },
              experimental_events: { store }
            })
          ),
          (open) => Effect.promise(() => open.close())
        )
        const subscribed = yield* Effect.promise(() =>
          client.experimental_events.subscribe({
            name: "object.created",
            delivery: {
              mode: "webhook",
              url: `http://127.0.0.1:${server.port}/hook`,
              allowInsecureLocalhost: true
            }
          })
        )
        for (const key of ["a", "b"]) yield* thing(story, key)
        yield* eventually(
          Effect.sync(() => [...heard]),
          (keys) => keys.length >= 2
        )
        expect(heard).toEqual(["a", "b"])
        yield* Effect.promise(() => client.experimental_events.unsubscribe({ id: subscribed.id }))
        expect(yield* rowsOf(story)).toEqual([])
      })
    )
  })
})

describe("A server that dies between a delivery and its record", () => {
  it.live("delivers it again under the same id, and loses nothing", () =>
    Effect.gen(function* () {
      const access = yield* freshDatabase
      const hook = yield* receiver()
      const first = yield* startMortal(access)
      const story = yield* newProject(first, access)
      yield* subscribing(story, hook.url)
      yield* first.dieAt("delivery.beforeRecord", 2)
      yield* Effect.forEach(["1", "2", "3"], (key) => Effect.ignoreCause(thing(story, key)))
      yield* first.died
      const second = yield* startMortal(access)
      const after = storyIn(second, access, story.projectId)
      const there = yield* after.get("/objects?type=Thing")
      const keys = there.items.map(({ key }: Json) => key).toReversed()
      // The claim of the dead lapses; a story does not wait for that.
      yield* ask(access, "update kb.event_subscriptions set claimed_until = now()", [])
      // The last may be the very one that has come already: each of them, and one of them twice.
      const delivered = yield* hook.until(keys.length + 1)
      expect([...new Set(keysOf(delivered))]).toEqual(keys)
      const twice = delivered.filter(({ body }) => body.data.key === keys[1])
      expect(twice).toHaveLength(2)
      expect(twice[0]?.headers["webhook-id"]).toBe(twice[1]?.headers["webhook-id"])
      expect(delivered).toHaveLength(keys.length + 1)
    })
  )
})
