/**
 * The graph's log as a source of MCP events: listed, polled and streamed, with no gap and no double.
 */
import { describe, expect, layer } from "@effect/vitest"
import { Effect } from "effect"
import { addressOf, resultOf, rpc } from "../testing/mcp-extension-words.ts"
import { eventsOf, openEvents } from "../testing/mcp-event-stream.ts"
import { newSession } from "../testing/mcp-sessions.ts"
import { ask } from "../testing/owner-rows.ts"
import { eventually, type Json, type Story } from "../testing/platform.ts"
import { newStoryHere, SharedServer } from "../testing/shared-server.ts"
import { feedOf, make } from "../testing/story-words.ts"
import { asUser } from "../testing/token-words.ts"

const names = [
  "object.created",
  "object.updated",
  "object.deleted",
  "relationship.created",
  "relationship.updated",
  "relationship.deleted"
]

const poll = (story: Story, params: Json) => resultOf(story, "events/poll", params)

/** The cursor of now. */
const now = (story: Story, name = "object.created") =>
  Effect.map(poll(story, { name }), ({ cursor }) => cursor as string)

const keysOf = (events: ReadonlyArray<Json>): ReadonlyArray<string> => events.map(({ data }) => data.key)

/** Every event behind a cursor, page by page. */
const drain = Effect.fnUntraced(function* (story: Story, params: Json) {
  const seen: Array<Json> = []
  let cursor = params.cursor
  for (let pages = 0; pages < 100; pages += 1) {
    const page = yield* poll(story, { ...params, cursor })
    seen.push(...page.events)
    cursor = page.cursor
    if (!page.hasMore) break
  }
  return seen
})

layer(SharedServer.layer, { excludeTestServices: true })((it) => {
  describe("The graph is a source of MCP events", () => {
    it.effect("the catalog says what there is, how it comes, and what may be asked", () =>
      Effect.gen(function* () {
        const story = yield* newStoryHere
        const { capabilities } = yield* resultOf(story, "server/discover")
        expect(capabilities.extensions).toMatchObject({ "io.modelcontextprotocol/events": {} })
        const { events } = yield* resultOf(story, "events/list")
        expect(events.map(({ name }: Json) => name)).toEqual(names)
        for (const event of events) {
          expect(event.delivery).toContain("poll")
          expect(event.delivery).toContain("push")
          expect(event.inputSchema).toMatchObject({ type: "object", additionalProperties: false })
          expect(event.payloadSchema).toMatchObject({ type: "object" })
          expect(Object.keys(event.inputSchema.properties)).toContain("where")
        }
      })
    )

    it.effect(
      "a poll without a cursor begins now, and behind its cursor everything is told once, in order",
      () =>
        Effect.gen(function* () {
          const story = yield* newStoryHere
          yield* make(story, "Thing")
          yield* feedOf(story, 1)
          const first = yield* poll(story, { name: "object.created" })
          expect(first).toMatchObject({
            events: [],
            truncated: false,
            hasMore: false,
            nextPollMs: expect.any(Number)
          })
          const object = yield* story.post("/objects", { type: "Thing", key: "a", properties: { size: 3 } })
          yield* story.patch(`/objects/${object.id}`, { properties: { size: 4 } })
          yield* story.post("/objects", { type: "Thing", key: "b" })
          const feed = yield* feedOf(story, 4)
          const page = yield* poll(story, { name: "object.created", cursor: first.cursor })
          expect(keysOf(page.events)).toEqual(["a", "b"])
          expect(page.events[0]).toEqual({
            eventId: feed[1].id,
            name: "object.created",
            timestamp: feed[1].createdAt,
            data: {
              objectId: object.id,
              type: "Thing",
              key: "a",
              version: 1,
              properties: { size: 3 },
              changedProperties: feed[1].changedProperties,
              actor: { type: "user", id: "admin" },
              approvedBy: null,
              runId: null,
              rootEventId: feed[1].rootEventId,
              depth: 0
            }
          })
          // The same cursor tells the same again, and the next one nothing.
          expect(yield* poll(story, { name: "object.created", cursor: first.cursor })).toEqual(page)
          expect((yield* poll(story, { name: "object.created", cursor: page.cursor })).events).toEqual([])
          const updated = yield* poll(story, { name: "object.updated", cursor: first.cursor })
          expect(updated.events).toMatchObject([
            { data: { objectId: object.id, version: 2, properties: { size: 4 } } }
          ])
        })
    )

    it.effect("pages end where they are asked to and say that there is more", () =>
      Effect.gen(function* () {
        const story = yield* newStoryHere
        const cursor = yield* now(story)
        for (const key of ["1", "2", "3", "4", "5"]) yield* story.post("/objects", { type: "Thing", key })
        yield* feedOf(story, 5)
        const page = yield* poll(story, { name: "object.created", cursor, maxEvents: 2 })
        expect([keysOf(page.events), page.hasMore]).toEqual([["1", "2"], true])
        expect(keysOf(yield* drain(story, { name: "object.created", cursor, maxEvents: 2 }))).toEqual([
          "1",
          "2",
          "3",
          "4",
          "5"
        ])
      })
    )

    it.effect(
      "only what is asked for is told: by type, by thing, by its properties and by what changed",
      () =>
        Effect.gen(function* () {
          const story = yield* newStoryHere
          const cursor = yield* now(story)
          const [big, small, other] = [
            yield* story.post("/objects", {
              type: "Box",
              key: "big",
              properties: { size: 9, colour: "red" }
            }),
            yield* story.post("/objects", { type: "Box", key: "small", properties: { size: 1 } }),
            yield* story.post("/objects", { type: "Bag", key: "other", properties: { size: 9 } })
          ]
          yield* story.patch(`/objects/${big.id}`, { properties: { colour: "blue" } })
          yield* story.patch(`/objects/${small.id}`, { properties: { size: 2 } })
          const link = yield* story.post("/relationships", { type: "holds", fromId: big.id, toId: small.id })
          yield* story.post("/relationships", { type: "holds", fromId: other.id, toId: small.id })
          yield* feedOf(story, 7)
          const told = (name: string, args: Json) =>
            Effect.map(drain(story, { name, arguments: args, cursor }), (events) =>
              events.map(({ data }) => data.key ?? data.relationshipId)
            )
          const over5 = [{ property: "size", op: "gt", value: 5 }]
          expect(yield* told("object.created", { type: "Box" })).toEqual(["big", "small"])
          expect(yield* told("object.created", { where: over5 })).toEqual(["big", "other"])
          expect(yield* told("object.created", { type: "Box", where: over5 })).toEqual(["big"])
          expect(yield* told("object.created", { objectId: other.id, type: null })).toEqual(["other"])
          expect(yield* told("object.updated", { changedProperties: ["colour"] })).toEqual(["big"])
          expect(yield* told("relationship.created", { fromId: big.id })).toEqual([link.id])
          expect(yield* told("relationship.created", { toId: big.id })).toEqual([])
        })
    )

    it.effect("what is too old is left out, and that it is left out is said", () =>
      Effect.gen(function* () {
        const story = yield* newStoryHere
        const cursor = yield* now(story)
        for (const key of ["old", "older", "new"]) yield* story.post("/objects", { type: "Thing", key })
        yield* feedOf(story, 3)
        yield* ask(
          story.access,
          "update kb.graph_events set created_at = now() - interval '1 hour' where project_id = $1 and snapshot ->> 'key' <> 'new'",
          [story.projectId]
        )
        const recent = yield* poll(story, { name: "object.created", cursor, maxAgeMs: 600_000 })
        expect([keysOf(recent.events), recent.truncated]).toEqual([["new"], true])
        const all = yield* poll(story, { name: "object.created", cursor, maxAgeMs: 7_200_000 })
        expect([keysOf(all.events), all.truncated]).toEqual([["old", "older", "new"], false])
        // A place that the feed has not reached was given out before the database was set back.
        const beyond = Buffer.from(`1.${story.projectId}.99`).toString("base64url")
        expect(yield* poll(story, { name: "object.created", cursor: beyond })).toMatchObject({
          events: [],
          truncated: true,
          cursor: recent.cursor
        })
      })
    )

    it.effect("a name, an argument or a cursor that does not exist is refused with what does", () =>
      Effect.gen(function* () {
        const story = yield* newStoryHere
        const foreign = yield* now(yield* newStoryHere)
        for (const method of ["events/poll", "events/stream"]) {
          const refusedBy = (params: Json) => Effect.map(rpc(story, method, params), ({ error }) => error)
          expect(yield* refusedBy({ name: "object.moved" })).toMatchObject({
            code: -32_011,
            data: { kind: "event" },
            message: expect.stringContaining("object.created")
          })
          for (const [params, place] of [
            [{ name: "object.created", arguments: { colour: "red" } }, "/colour"],
            [{ name: "object.created", arguments: { changedProperties: ["a"] } }, "/changedProperties"],
            [
              { name: "object.created", arguments: { where: [{ property: "a", op: "near", value: 1 }] } },
              "/where/0/op"
            ],
            [{ name: "object.created", userId: "ada" }, "/userId"],
            [{ name: "object.created", arguments: { projectId: foreign } }, "/projectId"],
            [{ name: "object.created", cursor: foreign }, "/cursor"],
            [{ name: "object.created", cursor: "nonsense" }, "/cursor"],
            [{ name: "object.created", maxAgeMs: -1 }, "/maxAgeMs"]
          ] as const)
            expect(yield* refusedBy(params)).toMatchObject({
              code: -32_602,
              message: expect.stringContaining(place)
            })
        }
      })
    )

    it.effect("nobody hears of another project", () =>
      Effect.gen(function* () {
        const story = yield* newStoryHere
        const other = yield* newStoryHere
        const cursor = yield* now(story)
        yield* make(other, "Theirs")
        yield* make(story, "Ours")
        yield* Effect.all([feedOf(story, 1), feedOf(other, 1)])
        const events = yield* drain(story, { name: "object.created", cursor })
        expect(events.map(({ data }) => data.type)).toEqual(["Ours"])
        const stranger = yield* asUser(story, "admin", [other.projectId])
        const answer = yield* Effect.promise(() =>
          fetch(story.url + addressOf(story), {
            method: "POST",
            headers: { authorization: `Bearer ${stranger.token}`, "content-type": "application/json" },
            body: "{}"
          }).then(({ status }) => status)
        )
        expect(answer).toBe(404)
      })
    )
  })

  describe("A stream of events", () => {
    it.effect(
      "says where it begins, tells what happens with the cursor behind it, and stays open while nothing does",
      () =>
        Effect.gen(function* () {
          const story = yield* newStoryHere
          yield* make(story, "Before")
          yield* feedOf(story, 1)
          const live = yield* openEvents(story, { name: "object.created" })
          const [active] = yield* live.until((heard) => heard.length >= 1)
          expect(active).toMatchObject({
            method: "notifications/events/active",
            params: {
              truncated: false,
              cursor: yield* now(story),
              _meta: { "io.modelcontextprotocol/subscriptionId": 1 }
            }
          })
          yield* make(story, "After")
          const [event] = eventsOf(yield* live.until((heard) => eventsOf(heard).length > 0))
          expect(event).toMatchObject({ name: "object.created", data: { type: "After" } })
          expect((yield* poll(story, { name: "object.created", cursor: event.cursor })).events).toEqual([])
          yield* live.until((heard) => heard.some(({ method }) => method.endsWith("/heartbeat")))
          expect(live.heard.at(-1)).toMatchObject({ params: { cursor: event.cursor } })
        })
    )

    it.effect("loses nothing and repeats nothing over connections that break while others write", () =>
      Effect.gen(function* () {
        const story = yield* newStoryHere
        const count = 40
        const begin = yield* now(story)
        const listening = Effect.gen(function* () {
          const events: Array<Json> = []
          while (events.length < count) {
            const cursor = events.at(-1)?.cursor ?? begin
            const live = yield* openEvents(story, { name: "object.created", cursor })
            const wanted = Math.min(7, count - events.length)
            yield* live.until((heard) => eventsOf(heard).length >= wanted)
            yield* live.cut
            events.push(...eventsOf(live.heard))
          }
          return events
        })
        const writing = Effect.forEach(
          Array.from({ length: count }, (_, index) => `${index}`),
          (key) => story.post("/objects", { type: "Thing", key }),
          { concurrency: 6 }
        )
        const [events] = yield* Effect.all([listening, writing], { concurrency: 2 })
        const feed = yield* feedOf(story, count)
        expect(events.map(({ eventId }) => eventId)).toEqual(feed.map(({ id }) => id))
      })
    )

    it.effect("a user has so many streams and no more, until one is closed", () =>
      Effect.gen(function* () {
        const story = yield* newStoryHere
        const listener = yield* asUser(story, "viewer")
        const streams = yield* Effect.forEach(
          Array.from({ length: 20 }),
          () => openEvents(listener, { name: "object.created" }),
          { concurrency: 5 }
        )
        for (const stream of streams) yield* stream.until((heard) => heard.length >= 1)
        const refused = yield* rpc(listener, "events/stream", { name: "object.created" })
        expect(refused.error).toMatchObject({ code: -32_013, data: { limit: "streams", max: 20 } })
        yield* streams[0]?.cut ?? Effect.void
        const isTaken = Effect.scoped(
          Effect.map(
            openEvents(listener, { name: "object.created" }),
            ({ headers }) => headers.get("content-type") === "text/event-stream"
          )
        )
        expect(yield* eventually(isTaken, (taken) => taken)).toBe(true)
      })
    )

    it.effect("so has a user of a session, until the connection of one breaks", () =>
      Effect.gen(function* () {
        const story = yield* newStoryHere
        const { open } = yield* newSession(yield* asUser(story, "viewer"))
        const opened = open("events/stream", { name: "object.created" })
        const streams = yield* Effect.forEach(Array.from({ length: 20 }), () => opened, { concurrency: 5 })
        const begins = { method: "notifications/events/active" }
        for (const { first } of streams) expect(yield* first).toMatchObject(begins)
        const comesLate = Effect.scoped(Effect.flatMap(opened, ({ first }) => first))
        expect(yield* comesLate).toMatchObject({ error: { code: -32_013, data: { limit: "streams" } } })
        yield* streams[0]?.cut ?? Effect.void
        yield* eventually(comesLate, ({ method }) => method === begins.method)
      })
    )
  })
})
